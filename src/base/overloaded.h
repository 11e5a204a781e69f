#pragma once

namespace pidcomm {

/// A visitor of a std::variant made from one function for each of its alternatives.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace pidcomm
