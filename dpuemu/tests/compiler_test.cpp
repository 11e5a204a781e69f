// The stand-in compiler accepts constructs of published programs that it once refused.
#include "program_fixture.h"

using namespace fixture;

namespace {

/// name: of the files, unique for each test, because tests run side by side.
bool is_compiled(const std::string &name, const std::string &text) {
  const TemporaryFile source(name + ".c", {text.begin(), text.end()});
  const std::string program = program_path(name);
  const std::string command =
      DPUEMU_TEST_COMPILER " -O2 -o " + program + " " + source.path + " >/dev/null 2>&1";
  const bool is_made = std::system(command.c_str()) == 0;
  std::remove(program.c_str());
  return is_made;
}

}  // namespace

TEST(Compiler_AcceptsAnMramPointerDeclaredRightAfterALoop) {
  CHECK(is_compiled("pointer_after_loop",
                    "#include <mram.h>\n"
                    "int main(void) {\n"
                    "  int sum = 0;\n"
                    "  for (int i = 0; i < 3; i++) sum += i;\n"
                    "  __mram_ptr int *numbers = (__mram_ptr int *)DPU_MRAM_HEAP_POINTER;\n"
                    "  return sum + numbers[0];\n"
                    "}\n"));
}

TEST(Compiler_KeepsAVariableThatTheNextDeclaratorUses) {
  CHECK(is_compiled("later_declarator",
                    "#include <alloc.h>\n"
                    "int main(void) {\n"
                    "  char *begin = mem_alloc(64), *end = begin + 64;\n"
                    "  return end - begin;\n"
                    "}\n"));
}
