"""Every door of a gateway is knocked at, and nobody may be let in."""
