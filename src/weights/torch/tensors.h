#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/keyed_hash.h"
#include "weights/common/tensor_list.h"
#include "weights/torch/globals.h"
#include "weights/torch/pickle/pickle.h"

namespace posenc::io {

/// Locates the storage with a key; at least `bytes` of it have to be in the file.
using LocateStorage = std::function<ManifestStorage(std::string_view key, uint64_t bytes)>;

/// Interprets the objects of a pickle as PyTorch's: which call rebuilds a tensor, over which
/// storage. Throws WeightsError for contradictions.
class TorchTensors {
 public:
  TorchTensors(const Pickle& pickle, TensorList& list, LocateStorage locate);

  const Pickle& pickle() const noexcept { return pickle_; }

  /// The meaning of the global `id`.
  GlobalMeaning meaning(PickleId id);

  /// The meaning of the global that the call `id` calls; Unknown for anything else.
  Global called(PickleId id);

  /// `id` without the tags that torch.jit wraps around it.
  PickleId resolve(PickleId id);

  /// The dense tensor that `id` rebuilds, without a name; nullopt if it is something else.
  std::optional<ManifestTensor> read(PickleId id);

  /// Describes a tensor that is not dense, without values, or of a class of its own, which cannot
  /// be read; nullopt if `id` is something else.
  std::optional<std::string> unreadable_tensor(PickleId id);

  /// Describes an object that is neither a tensor nor a plain value by its class.
  std::string describe(PickleId id);

  /// Whether it is a torch.nn.Module, judging by the attributes that every one has.
  bool is_module(PickleId id) const;

 private:
  struct Storage {
    std::size_t number;
    uint64_t bytes;
  };
  struct View {
    std::size_t storage;
    ManifestDtype dtype;
    bool untyped;  // its elements are bytes
    int64_t offset = 0;
    std::optional<int64_t> elements;  // of a part of the storage, in old files
  };

  static constexpr int kMostWrappers = 8;

  std::optional<ManifestTensor> read_old(PickleId id);
  ManifestTensor rebuild(Global function, PickleId arguments);
  View read_storage(PickleId persistent);
  std::size_t storage_number(std::string_view key, uint64_t bytes);
  std::vector<int64_t> read_sizes(PickleId id);
  int64_t read_integer(PickleId id, const char* what) const;
  void read_flags(PickleId metadata, ManifestTensor& tensor) const;

  const Pickle& pickle_;
  TensorList& list_;
  LocateStorage locate_;
  std::unordered_map<PickleId, GlobalMeaning> meanings_;
  NameViewMap<Storage> storages_;
};

/// The items of a short tuple.
class TupleItems {
 public:
  static constexpr std::size_t kMost = 16;

  /// Empty if `id` is not a tuple, or a longer one.
  TupleItems(const Pickle& pickle, PickleId id);

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  PickleId operator[](std::size_t at) const { return items_[at]; }

 private:
  std::array<PickleId, kMost> items_;
  std::size_t size_ = 0;
};

/// A plain value in Python's notation, shortened: None, a bool, a number, a text (without quotes),
/// bytes, a dtype, a device; tuples, lists and sets of these; an empty dict. nullopt for anything
/// else.
std::optional<std::string> plain_text(TorchTensors& objects, PickleId id);

/// The same for a dict's key; a description in `<>` if it is not a plain value.
std::string key_text(TorchTensors& objects, PickleId id);

}  // namespace posenc::io
