#include "harness.h"

int main(int argc, char **argv) { return harness::run_all(argc, argv); }
