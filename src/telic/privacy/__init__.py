"""Know the risk before you publish a network: risk, attack, anonymisers, advice."""
