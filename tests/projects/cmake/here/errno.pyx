NAME, PLACE = __name__, "here"
