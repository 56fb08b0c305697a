#include "weights/torch/tensor_search.h"

namespace posenc::io {
namespace {

constexpr std::size_t kMostNested = 200;

}  // namespace

// Tensors of other classes count too: it is all the same why they cannot be read.
bool TensorSearch::is_tensor(PickleId id) {
  switch (objects_.called(id)) {
    case Global::RebuildTensor:
    case Global::RebuildTensorV2:
    case Global::RebuildTensorV3:
    case Global::RebuildParameter:
    case Global::RebuildFromType:
    case Global::PlainTensor:
    case Global::Sparse:
    case Global::Quantised:
    case Global::Nested:
    case Global::Meta:
    case Global::OtherTensor: return true;
    default: return false;
  }
}

bool TensorSearch::is_container(PickleId id) {
  const PickleKind kind = objects_.pickle().kind(id);
  return kind >= PickleKind::Tuple && kind <= PickleKind::Call;
}

// The next object in it, or kNoObject at its end.
PickleId TensorSearch::next(Frame& frame) const {
  const Pickle& pickle = objects_.pickle();
  if (frame.part == kItems && frame.at != kNoObject) {
    const PickleId item = pickle.item(frame.at);
    frame.at = pickle.next(frame.at);
    return item;
  }
  while (frame.part != frame.end) {
    const auto part = static_cast<Part>(frame.part);
    frame.part = static_cast<uint8_t>(part + 1);
    if (part == kItems) continue;  // at their end
    const PickleId id = part == kArguments ? pickle.arguments(frame.id) : pickle.state(frame.id);
    if (id != kNoObject) return id;
  }
  return kNoObject;
}

bool TensorSearch::in_parts(PickleId call, Part part) {
  const Pickle& pickle = objects_.pickle();
  if (searched_.empty()) {
    pickle.budget().spend(pickle.size() / 8);
    searched_.resize(pickle.size());
  }
  const uint32_t items = part == kItems ? pickle.items(call) : kNoObject;
  std::vector<Frame> frames = {{call, part, static_cast<uint8_t>(part + 1), items}};
  while (!frames.empty()) {
    const PickleId id = next(frames.back());
    if (id == kNoObject) {
      frames.pop_back();
      continue;
    }
    if (!is_container(id) || searched_[id]) continue;
    if (is_tensor(id)) {
      // What led here holds a tensor.
      for (std::size_t i = 1; i < frames.size(); ++i) searched_[frames[i].id] = false;
      return true;
    }
    if (frames.size() == kMostNested) continue;
    searched_[id] = true;
    const bool is_call = pickle.is(id, PickleKind::Call);
    frames.push_back({id, kItems, is_call ? kEnd : kArguments, pickle.items(id)});
  }
  return false;
}

}  // namespace posenc::io
