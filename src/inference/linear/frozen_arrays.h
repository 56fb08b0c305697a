#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>

namespace posenc::inference {

/// What a frozen model computes with, by name: parameters and buffers of the module by theirs; what
/// was made of a parameter, and is there in its place, by the name of that, a slash and its own,
/// such as `layers.0.linear1.weight/elements`.
using FrozenArrays = std::map<std::string, at::Tensor>;

/// Gives an array that a weight consists of, by its own name; throws unless it has these sizes and
/// this dtype.
using TakeArray =
    std::function<at::Tensor(const char* name, at::IntArrayRef sizes, at::ScalarType dtype)>;

}  // namespace posenc::inference
