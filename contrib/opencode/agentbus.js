// agentbus for opencode, written by `agentbus init`: says which conversation a call belongs to.
//
// All sessions of one opencode share one MCP server, which is not told who calls. This adds an
// argument to calls of its tools, which the server takes out again. Whatever goes wrong, the call is
// made without it.
export const Agentbus = async ({ client }) => {
  const parents = new Map();

  const parentOf = async (id) => {
    if (!parents.has(id)) {
      const found = await client.session.get({ path: { id } });
      if (!found.data) return undefined;
      parents.set(id, found.data.parentID);
    }
    return parents.get(id);
  };

  const rootOf = async (id) => {
    for (let step = 0, parent; step < 32 && (parent = await parentOf(id)); step++) id = parent;
    return id;
  };

  return {
    "tool.execute.before": async (input, output) => {
      if (!input.tool.startsWith("agentbus_")) return;
      try {
        const session = await rootOf(input.sessionID);
        const child = session === input.sessionID ? {} : { child: input.sessionID };
        output.args.agentbus_caller = { session, ...child };
      } catch {}
    },
  };
};
