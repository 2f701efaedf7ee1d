"""The policy: what to decide next, given what is decided and the task; numpy only."""
