#include "weights/torch/tensors.h"

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

std::optional<std::string> TorchTensors::unreadable_tensor(PickleId id) {
  for (int i = 0; i < kMostWrappers && called(id) == Global::RebuildParameter; ++i) {
    const TupleItems items(pickle_, pickle_.arguments(id));
    if (items.empty()) break;
    id = items[0];
  }
  Global kind = called(id);
  std::string of_class;
  const TupleItems items(pickle_,
                         kind == Global::RebuildFromType ? pickle_.arguments(id) : kNoObject);
  if (items.size() > 1) {
    const Global type = meaning(items[1]).global;
    const bool is_plain =
        type == Global::PlainTensor || type == Global::Parameter || type == Global::Buffer;
    kind = is_plain                 ? meaning(items[0]).global
           : type == Global::Nested ? type
                                    : Global::OtherTensor;
    if (!is_plain) of_class = " of class " + pickle_.global(items[1]);
  }
  switch (kind) {
    case Global::Sparse: return "a sparse tensor (save it after to_dense())";
    case Global::Quantised: return "a quantised tensor (save it after dequantize())";
    case Global::Nested: return "a nested tensor (save the tensors in it)";
    case Global::Meta: return "a meta tensor, which has no values";
    case Global::OtherTensor:
      return "a tensor" + (of_class.empty() ? " of another class" : of_class);
    default: return std::nullopt;
  }
}

std::string TorchTensors::describe(PickleId id) {
  if (const auto tensor = unreadable_tensor(id)) return *tensor;  // as a key
  const bool is_call = pickle_.is(id, PickleKind::Call);
  const TupleItems items(pickle_, is_call ? pickle_.arguments(id) : kNoObject);
  const PickleId function = is_call ? pickle_.callable(id) : id;
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
