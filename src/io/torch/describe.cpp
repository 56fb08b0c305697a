#include "io/torch/tensors.h"

namespace posenc::io {

bool TorchTensors::is_module(PickleId id) const {
  if (!pickle_.is(id, PickleKind::Call) || !pickle_.is(pickle_.state(id), PickleKind::Dict)) {
    return false;
  }
  bool parameters = false, modules = false;
  for (auto at = pickle_.items(pickle_.state(id)); at != kNoObject;
       at = pickle_.next(pickle_.next(at))) {
    const PickleId key = pickle_.item(at);
    if (!pickle_.is(key, PickleKind::Text)) continue;
    const std::string_view name = pickle_.text(key);
    parameters = parameters || name == "_parameters";
    modules = modules || name == "_modules";
  }
  return parameters && modules;
}

std::string TorchTensors::describe(PickleId id) {
  for (int i = 0; i < kMostWrappers && called(id) == Global::RebuildParameter; ++i) {
    const TupleItems items(pickle_, pickle_.arguments(id));
    if (items.empty()) break;
    id = items[0];
  }
  const bool is_call = pickle_.is(id, PickleKind::Call);
  const TupleItems items(pickle_, is_call ? pickle_.arguments(id) : kNoObject);
  PickleId function = is_call ? pickle_.callable(id) : id;
  if (called(id) == Global::RebuildFromType && items.size() > 1) {
    const Global type = meaning(items[1]).global;
    if (type != Global::PlainTensor && type != Global::Parameter && type != Global::Buffer) {
      return "a tensor of class " + pickle_.global(items[1]);
    }
    function = items[0];
  }
  switch (meaning(function).global) {
    case Global::Sparse: return "a sparse tensor";
    case Global::Quantised: return "a quantised tensor";
    case Global::Nested: return "a nested tensor";
    case Global::Meta: return "a meta tensor";
    default: break;
  }
  if (pickle_.is(function, PickleKind::Set)) return "a set";
  std::string name = pickle_.global(function);
  if (name == "copyreg._reconstructor" && !items.empty()) name = pickle_.global(items[0]);
  if (pickle_.is(function, PickleKind::Persistent)) {
    // A class that was saved with its source: ("module", class, file, source).
    const TupleItems parts(pickle_, pickle_.arguments(function));
    const bool has_class = parts.size() > 1 && pickle_.is(parts[0], PickleKind::Text) &&
                           pickle_.text(parts[0]) == "module";
    if (!has_class) return "a storage";
    name = pickle_.global(parts[1]);
  }
  return name.empty() ? "an object" : name;
}

}  // namespace posenc::io
