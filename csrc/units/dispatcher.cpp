// Compiled as one file: the sources that include the headers of the dispatcher, and no more.
#include "../dispatcher.cpp"
#include "../registry.cpp"
#include "../signature.cpp"
#include "../vmap.cpp"
