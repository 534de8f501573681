"""How fast the reasons of idle time are found."""
