#pragma once

#include <vector>

#include "weights/torch/tensors.h"

namespace posenc::io {

/// Looks for tensors inside calls whose meaning is unknown, at any depth up to a limit. Objects
/// that were searched in vain are not searched again.
class TensorSearch {
 public:
  explicit TensorSearch(TorchTensors& objects) : objects_(objects) {}

  /// Whether there is one among what was appended to the call, or set in it.
  bool in_items(PickleId call) { return in_parts(call, kItems); }
  bool in_arguments(PickleId call) { return in_parts(call, kArguments); }
  bool in_state(PickleId call) { return in_parts(call, kState); }

 private:
  enum Part : uint8_t { kItems, kArguments, kState, kEnd };
  // An object that is being searched, part by part.
  struct Frame {
    PickleId id;
    uint8_t part;
    uint8_t end;
    uint32_t at;  // the next item, if the part is kItems
  };

  bool in_parts(PickleId call, Part part);
  bool is_tensor(PickleId id);
  bool is_container(PickleId id);
  PickleId next(Frame& frame) const;

  TorchTensors& objects_;
  std::vector<bool> searched_;  // by id
};

}  // namespace posenc::io
