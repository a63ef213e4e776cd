# Operators that are declared by hand.
