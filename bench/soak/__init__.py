"""Many sessions at work for minutes while something of the bus is killed now and then; then all
that it keeps, and all that anybody was shown, is held against each other, to the message."""
