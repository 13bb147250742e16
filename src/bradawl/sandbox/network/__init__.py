"""The network of sandboxed commands: one loopback listener per command, behind which a proxy checks each host."""
