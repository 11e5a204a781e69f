#pragma once

namespace pidcomm {

/// A visitor for std::variant, made from one function for each alternative of the variant.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
// Compilers before clang 17 need this guide.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace pidcomm
