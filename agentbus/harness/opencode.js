// agentbus for opencode, written by `agentbus init`: says which conversation a call belongs to.
//
// All sessions of one opencode share one MCP server, which is not told who calls. This adds an
// argument to calls of its tools, which the server takes out again, and sets two variables in the
// shell for `agentbus wait`. Whatever goes wrong, the call is made without them.
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

  const caller = async (id) => {
    const session = await rootOf(id);
    return session === id ? { session } : { session, child: id };
  };

  return {
    "tool.execute.before": async (input, output) => {
      if (!input.tool.startsWith("agentbus_")) return;
      try {
        output.args.agentbus_caller = await caller(input.sessionID);
      } catch {}
    },
    // The model is shown its calls again, without what it has not said itself.
    "experimental.chat.messages.transform": async (_, output) => {
      for (const { parts } of output.messages ?? [])
        for (const part of parts ?? [])
          if (part.type === "tool" && part.tool?.startsWith("agentbus_"))
            delete part.state?.input?.agentbus_caller;
    },
    "shell.env": async (input, output) => {
      if (!input.sessionID) return;
      try {
        const { session, child } = await caller(input.sessionID);
        output.env.OPENCODE_AGENTBUS_SESSION = session;
        output.env.OPENCODE_AGENTBUS_CHILD = child ?? "";
      } catch {}
    },
  };
};
