"""Speed and size of agentbus, as ratios against something simple measured in the same run."""
