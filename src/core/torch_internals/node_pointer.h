#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <utility>

#include "core/torch_internals/torch_version.h"

namespace posenc::torch_internals {

// LibTorch 2.13 counts the owners of a node in the node itself; before, it used std::shared_ptr
// with a deleter that frees a long chain of nodes without recursion.
#if POSENC_TORCH_AT_LEAST(2, 13)

/// What LibTorch owns nodes by.
template <typename Node>
using NodePointer = c10::intrusive_ptr<Node>;

/// Makes a node.
template <typename Node, typename... Arguments>
NodePointer<Node> make_node(Arguments&&... arguments) {
  return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}

#else

template <typename Node>
using NodePointer = std::shared_ptr<Node>;

template <typename Node, typename... Arguments>
NodePointer<Node> make_node(Arguments&&... arguments) {
  return {new Node(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode};
}

#endif

}  // namespace posenc::torch_internals
