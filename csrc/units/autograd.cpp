// Compiled as one file: the sources that include the headers of autograd and of torch's Python classes.
#include "../apply.cpp"
#include "../autograd_kernels.cpp"
#include "../layout.cpp"
#include "../node.cpp"
#include "../runtime.cpp"
#include "../transforms.cpp"
