#include "weights/torch/tensors.h"

#include <utility>

#include "base/text.h"
#include "weights/common/resolve_sign.h"

namespace posenc::io {
namespace {

WeightsError contradiction(const std::string& rule) { return {WeightsErrorCode::Corrupt, rule}; }

bool rebuilds(Global global) {
  return global == Global::RebuildTensor || global == Global::RebuildTensorV2 ||
         global == Global::RebuildTensorV3;
}

// Whether all elements are below `end`; negative and overflowing values are found later, for all.
bool reaches_no_further(const ManifestTensor& tensor, int64_t end) {
  int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.sizes.size() && i < tensor.strides.size(); ++i) {
    int64_t reach = 0;
    if (tensor.sizes[i] == 0) return true;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return false;
    }
  }
  return last < end;
}

}  // namespace

TupleItems::TupleItems(const Pickle& pickle, PickleId id) {
  if (!pickle.is(id, PickleKind::Tuple) || pickle.count(id) > kMost) return;
  for (auto at = pickle.items(id); at != kNoObject; at = pickle.next(at)) {
    items_[size_++] = pickle.item(at);
  }
}

TorchTensors::TorchTensors(const Pickle& pickle, TensorList& list, LocateStorage locate)
    : pickle_(pickle), list_(list), locate_(std::move(locate)) {}

GlobalMeaning TorchTensors::meaning(PickleId id) {
  if (!pickle_.is(id, PickleKind::Global)) return {};
  const auto found = meanings_.find(id);
  if (found != meanings_.end()) return found->second;
  return meanings_.emplace(id, meaning_of(pickle_.global(id))).first->second;
}

Global TorchTensors::called(PickleId id) {
  if (!pickle_.is(id, PickleKind::Call)) return Global::Unknown;
  return meaning(pickle_.callable(id)).global;
}

PickleId TorchTensors::resolve(PickleId id) {
  for (int i = 0; i < kMostWrappers && called(id) == Global::Transparent; ++i) {
    const auto first = pickle_.items(pickle_.arguments(id));
    if (first == kNoObject) break;
    id = pickle_.item(first);
  }
  return id;
}

std::optional<ManifestTensor> TorchTensors::read(PickleId id) {
  bool parameter = false, buffer = false;
  std::optional<bool> requires_grad;
  for (int i = 0; i < kMostWrappers; ++i) {
    const Global function = called(id);
    if (function == Global::PlainTensor) return read_old(id);
    if (function != Global::RebuildParameter && function != Global::RebuildFromType &&
        !rebuilds(function)) {
      return std::nullopt;
    }
    PickleId arguments = pickle_.arguments(id);
    Global inner = function;
    const TupleItems items(pickle_, arguments);
    if (items.size() < 3) throw contradiction("is rebuilt from too few values");
    if (function == Global::RebuildFromType) {
      const Global type = meaning(items[1]).global;
      parameter = parameter || type == Global::Parameter;
      buffer = buffer || type == Global::Buffer;
      if (type != Global::PlainTensor && type != Global::Parameter && type != Global::Buffer) {
        return std::nullopt;
      }
      inner = meaning(items[0]).global;
      arguments = items[2];
    }
    if (rebuilds(inner)) {
      ManifestTensor tensor = rebuild(inner, arguments);
      tensor.role = parameter ? TensorRole::Parameter
                    : buffer  ? TensorRole::Buffer
                              : TensorRole::Unknown;
      tensor.requires_grad = requires_grad.value_or(tensor.requires_grad);
      return tensor;
    }
    if (inner != Global::RebuildParameter) return std::nullopt;
    const TupleItems values(pickle_, arguments);
    if (values.size() < 3) throw contradiction("is rebuilt from too few values");
    parameter = true;
    if (pickle_.is(values[1], PickleKind::Bool)) requires_grad = pickle_.integer(values[1]) != 0;
    id = values[0];
  }
  throw contradiction("is wrapped more often than PyTorch would");
}

// Of PyTorch 0.1: an empty tensor whose state is what _rebuild_tensor() takes.
std::optional<ManifestTensor> TorchTensors::read_old(PickleId id) {
  const TupleItems state(pickle_, pickle_.state(id));
  if (state.size() != 4 || !pickle_.is(state[0], PickleKind::Persistent)) return std::nullopt;
  return rebuild(Global::RebuildTensor, pickle_.state(id));
}

ManifestTensor TorchTensors::rebuild(Global function, PickleId arguments) {
  const TupleItems items(pickle_, arguments);
  const std::size_t least = function == Global::RebuildTensor     ? 4
                            : function == Global::RebuildTensorV2 ? 6
                                                                  : 7;
  if (items.size() < least) throw contradiction("is rebuilt from too few values");
  ManifestTensor tensor;
  const View view = read_storage(items[0]);
  tensor.storage = view.storage;
  tensor.dtype = view.dtype;
  tensor.offset = read_integer(items[1], "offset");
  tensor.sizes = read_sizes(items[2]);
  tensor.strides = read_sizes(items[3]);
  if (function != Global::RebuildTensor && pickle_.is(items[4], PickleKind::Bool)) {
    tensor.requires_grad = pickle_.integer(items[4]) != 0;
  }
  if (function == Global::RebuildTensorV3) {
    const auto type = meaning(items[6]);
    if (type.global != Global::DtypeName) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "has a dtype that cannot be read: " + in_quotes(pickle_.global(items[6])),
                         "convert it to another one in Python");
    }
    if (!view.untyped) throw contradiction("has two dtypes");
    tensor.dtype = *type.dtype;
  }
  if (items.size() > least) read_flags(resolve(items[least]), tensor);  // tagged in TorchScript
  if (view.elements) {
    // A part of a storage: the tensor's offset counts from its beginning, and it has to stay
    // inside.
    if (!reaches_no_further(tensor, *view.elements) ||
        __builtin_add_overflow(tensor.offset, view.offset, &tensor.offset)) {
      throw WeightsError(WeightsErrorCode::OutOfBounds, "reaches outside its part of a storage");
    }
  }
  return tensor;
}

// ("storage", class, key, location, elements[, view]); view: None or (key, offset, elements).
TorchTensors::View TorchTensors::read_storage(PickleId persistent) {
  const bool outside = pickle_.is(persistent, PickleKind::Persistent);
  const TupleItems items(pickle_, outside ? pickle_.arguments(persistent) : kNoObject);
  if (items.size() < 5 || !pickle_.is(items[0], PickleKind::Text) ||
      pickle_.text(items[0]) != "storage" || !pickle_.is(items[2], PickleKind::Text)) {
    throw contradiction("has no storage");
  }
  const auto type = meaning(items[1]);
  if (type.global != Global::Storage) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "has a storage that cannot be read: " + in_quotes(pickle_.global(items[1])),
                       "convert it to another dtype in Python");
  }
  const int64_t elements = read_integer(items[4], "storage size");
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, item_size(*type.dtype), &bytes)) {
    throw WeightsError(WeightsErrorCode::OutOfBounds,
                       "has a storage of " + std::to_string(elements) + " elements");
  }
  View view;
  view.storage = storage_number(pickle_.text(items[2]), static_cast<uint64_t>(bytes));
  view.dtype = *type.dtype;
  view.untyped = pickle_.global(items[1]).ends_with("UntypedStorage");
  if (items.size() == 6 && !pickle_.is(items[5], PickleKind::None)) {
    const TupleItems part(pickle_, items[5]);
    if (part.size() != 3) throw contradiction("has a part of a storage without a place");
    view.offset = read_integer(part[1], "offset");
    view.elements = read_integer(part[2], "storage size");
    if (view.offset < 0 || *view.elements < 0 || view.offset > elements ||
        *view.elements > elements - view.offset) {
      throw WeightsError(WeightsErrorCode::OutOfBounds,
                         "has a part of a storage that reaches outside of it");
    }
  }
  return view;
}

std::size_t TorchTensors::storage_number(std::string_view key, uint64_t bytes) {
  const auto found = storages_.find(key);
  if (found == storages_.end()) {
    const std::size_t number = list_.add_storage(locate_(key, bytes));
    storages_.emplace(key, Storage{number, bytes});
    return number;
  }
  if (found->second.bytes != bytes) {
    throw contradiction("gives storage " + in_quotes(key) + " " + std::to_string(bytes) +
                        " bytes, another tensor " + std::to_string(found->second.bytes));
  }
  return found->second.number;
}

std::vector<int64_t> TorchTensors::read_sizes(PickleId id) {
  id = resolve(id);
  if (called(id) == Global::Sequence) {  // torch.Size((2, 3))
    const TupleItems items(pickle_, pickle_.arguments(id));
    if (!items.empty()) id = items[0];
  }
  if (!pickle_.is(id, PickleKind::Tuple) && !pickle_.is(id, PickleKind::List)) {
    throw contradiction("has sizes or strides that are not a tuple");
  }
  if (pickle_.count(id) > kMostDimensions) {
    throw contradiction("must have at most 64 dimensions. Got " +
                        std::to_string(pickle_.count(id)));
  }
  std::vector<int64_t> sizes;
  sizes.reserve(pickle_.count(id));
  for (auto at = pickle_.items(id); at != kNoObject; at = pickle_.next(at)) {
    sizes.push_back(read_integer(pickle_.item(at), "size or stride"));
  }
  return sizes;
}

int64_t TorchTensors::read_integer(PickleId id, const char* what) const {
  if (!pickle_.is(id, PickleKind::Int)) {
    throw contradiction(std::string("has a ") + what + " that is not a 64-bit integer");
  }
  return pickle_.integer(id);
}

void TorchTensors::read_flags(PickleId metadata, ManifestTensor& tensor) const {
  if (pickle_.is(metadata, PickleKind::None)) return;
  if (!pickle_.is(metadata, PickleKind::Dict)) throw contradiction("has flags that are not a dict");
  for (auto at = pickle_.items(metadata); at != kNoObject; at = pickle_.next(pickle_.next(at))) {
    const PickleId key = pickle_.item(at), value = pickle_.item(pickle_.next(at));
    const auto name = pickle_.is(key, PickleKind::Text) ? pickle_.text(key) : "";
    if (!pickle_.is(value, PickleKind::Bool) || (name != "conj" && name != "neg")) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "has a flag that is not known: " + in_quotes(name));
    }
    (name == "conj" ? tensor.conj : tensor.negative) = pickle_.integer(value) != 0;
  }
  const bool complex = tensor.dtype == ManifestDtype::Complex32 ||
                       tensor.dtype == ManifestDtype::Complex64 ||
                       tensor.dtype == ManifestDtype::Complex128;
  if (tensor.conj && !complex) throw contradiction("is conjugate, but not complex");
  if (tensor.negative) check_negative(tensor.dtype);
}

}  // namespace posenc::io
