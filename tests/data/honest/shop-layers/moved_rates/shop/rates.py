"""Tax rates in percent."""

RATES = {"north": 19, "south": 22}
