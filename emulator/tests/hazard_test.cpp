#include "program_fixture.h"
