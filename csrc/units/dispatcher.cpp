// Compiled as one file: what includes the headers of the dispatcher, and no more.
#include "../dispatcher.cpp"
#include "../registry.cpp"
#include "../signature.cpp"
