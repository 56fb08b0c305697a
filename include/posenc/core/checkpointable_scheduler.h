#pragma once

#include <map>
#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Optional interface through which a learning-rate schedule exposes to checkpoints what it keeps
/// beside its step count. A class derived from torch::optim::LRScheduler may inherit it as well.
class CheckpointableScheduler {
 public:
  virtual ~CheckpointableScheduler() = default;

  /// The kind, such as `LambdaLR`: a schedule continues from the state of its own kind only.
  virtual std::string kind() const = 0;
  /// The numbers by name.
  virtual std::map<std::string, double> numbers() const = 0;
  /// Sets the numbers. Throws c10::ValueError for other names than those of numbers() and for
  /// values that the schedule does not accept, and then changes nothing.
  virtual void set_numbers(const std::map<std::string, double>& numbers) = 0;
};

}  // namespace posenc
