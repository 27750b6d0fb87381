"""Who asks: tenants, keys, users' tokens, pages and rates."""
