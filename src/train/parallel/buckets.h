#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace posenc::parallel {

/// A flat tensor of gradients, which is summed over the processes as a whole.
struct Bucket {
  at::Tensor flat;
  std::vector<std::size_t> parameters;  ///< those with a slot here, by index
};

/// Slots for the gradients of some parameters in buckets of one device and dtype each. They depend
/// only on what all processes have agreed on, so that the processes' buckets are equal.
struct Buckets {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<Bucket> all;             ///< in the order of their exchange
  std::vector<std::size_t> bucket_of;  ///< by parameter; kNone: it has no slot
  std::vector<at::Tensor> slots;       ///< by parameter, with its sizes; undefined: it has none
  at::Tensor tail;                     ///< float32 numbers at the end of the last bucket
};

/// Makes slots for the parameters that are `placed`. Autograd completes the last parameters first,
/// so the order of the buckets is the reverse of theirs. The tail is at the end of the last bucket
/// of float32, which becomes the last one of all; without such, it has a bucket of its own.
Buckets make_buckets(const std::vector<at::Tensor>& parameters, const std::vector<bool>& placed,
                     int64_t bucket_bytes, int64_t tail);

/// Another handle to the memory of a slot. No view of autograd's: Optimizer::zero_grad() cannot
/// detach those. And not the slot itself, which a program could then change through `.grad`.
at::Tensor alias_of(const at::Tensor& slot);
/// Whether `gradient` is in its slot already.
bool is_alias_of(const at::Tensor& gradient, const at::Tensor& slot);

}  // namespace posenc::parallel
