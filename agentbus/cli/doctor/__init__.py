"""`agentbus doctor`: every reason why a message might not arrive, and what mends it.

`gather` looks at the machine and changes nothing; `checks` judges what it found, each check one
pure function of the `Facts`; `report` shows it.
"""
