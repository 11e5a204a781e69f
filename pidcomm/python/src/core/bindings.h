// Functions that add the parts of module pidcomm._core.
#pragma once

#include <nanobind/nanobind.h>

namespace core {

void bind_tables(nanobind::module_ &m);
void bind_cube(nanobind::module_ &m);
void bind_hosts(nanobind::module_ &m);
void bind_recorder(nanobind::module_ &m);
void bind_pool(nanobind::module_ &m);
void bind_set(nanobind::module_ &m);
void bind_stream(nanobind::module_ &m);

}  // namespace core
