#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weights/common/module_state.h"

namespace posenc::io {

/// For each target, the others that share memory with it, in whole or in part, by their indices.
using Sharing = std::vector<std::vector<std::size_t>>;
Sharing sharing_of(const std::vector<Target>& targets);

/// The value that a target will get, in its dtype and of its shape.
using NewValue = std::function<at::Tensor(std::size_t target)>;

/// Two of `members`, in ascending order, of which the second would replace some values of the first
/// by others if it was written after it; nullopt if there are none. Writes to memory of its own.
std::optional<std::pair<std::size_t, std::size_t>> find_conflict(
    const std::vector<Target>& targets, const std::vector<std::size_t>& members,
    const NewValue& value);

/// Lives while a target is written. Autograd notices a write by the version of the tensor, and a
/// tensor that set_data() gave the same memory counts versions of its own: they are incremented at
/// the end.
class SharedWrite {
 public:
  SharedWrite(const std::vector<Target>& targets, const std::vector<std::size_t>& others);
  SharedWrite(const SharedWrite&) = delete;
  SharedWrite& operator=(const SharedWrite&) = delete;
  ~SharedWrite();

 private:
  std::vector<std::pair<at::Tensor, int64_t>> versions_;
};

}  // namespace posenc::io
