NAME, PLACE = __name__, "there"
