#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "weights/common/file.h"
#include "weights/common/keyed_hash.h"
#include "weights/torch/pickle/parser.h"
#include "weights/torch/readers.h"
#include "weights/torch/state_dict_walker.h"
#include "weights/torch/storages.h"

// The format before PyTorch 1.6: five pickles one after the other (a magic number, the protocol,
// machine information, the object, the keys of its storages), then for each key the number of its
// elements as int64, and the elements, unaligned.
namespace posenc::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr std::size_t kMagicAt[] = {2, 11};  // without and with a protocol 4 frame
constexpr int64_t kProtocol = 1001;
constexpr uint64_t kFirstRead = uint64_t{1} << 20;

struct Storage {
  uint64_t bytes = 0;
  uint64_t item = 1;  // bytes per element
  uint64_t offset = 0;
};
using Storages = NameMap<Storage>;

void check_machine(const Pickle& pickle, PickleId facts) {
  if (!pickle.is(facts, PickleKind::Dict)) return;
  for (auto at = pickle.items(facts); at != kNoObject; at = pickle.next(pickle.next(at))) {
    const PickleId key = pickle.item(at), value = pickle.item(pickle.next(at));
    if (pickle.is(key, PickleKind::Text) && pickle.text(key) == "little_endian" &&
        pickle.is(value, PickleKind::Bool) && pickle.integer(value) == 0) {
      throw WeightsError(WeightsErrorCode::Unsupported, "was saved on a big-endian machine",
                         "load it with Python and save it again on a little-endian one");
    }
  }
}

// The sizes of all storages that the object refers to, even inside opaque objects: each has to be
// skipped to find the next. Their offsets are not known yet.
Storages find_sizes(TorchTensors& objects) {
  const Pickle& pickle = objects.pickle();
  Storages storages;
  for (PickleId id = 0; id < pickle.size(); ++id) {
    if (!pickle.is(id, PickleKind::Persistent)) continue;
    const TupleItems items(pickle, pickle.arguments(id));
    if (items.size() < 5 || !pickle.is(items[2], PickleKind::Text) ||
        !pickle.is(items[4], PickleKind::Int)) {
      continue;  // a class, not a storage
    }
    const auto dtype = objects.meaning(items[1]).dtype;
    const int64_t elements = pickle.integer(items[4]);
    int64_t bytes = 0;
    if (!dtype || elements < 0 || __builtin_mul_overflow(elements, item_size(*dtype), &bytes)) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "has a storage of an unknown kind: " + in_quotes(pickle.global(items[1])));
    }
    pickle.budget().spend(sizeof(Storage) + 2 * pickle.text(items[2]).size());
    storages[std::string(pickle.text(items[2]))] = {static_cast<uint64_t>(bytes),
                                                    static_cast<uint64_t>(item_size(*dtype)), 0};
  }
  return storages;
}

// Goes through the data from `at` on, in the order of the list of keys.
void find_offsets(const InputFile& file, uint64_t at, const Pickle& pickle, PickleId keys,
                  Storages& storages) {
  if (!pickle.is(keys, PickleKind::List)) {
    throw WeightsError(WeightsErrorCode::Corrupt, "lacks the list of its storages");
  }
  for (auto cell = pickle.items(keys); cell != kNoObject; cell = pickle.next(cell)) {
    const PickleId key = pickle.item(cell);
    const auto found =
        pickle.is(key, PickleKind::Text) ? storages.find(pickle.text(key)) : storages.end();
    if (found == storages.end()) {
      throw WeightsError(WeightsErrorCode::Corrupt, "lists a storage that nothing refers to");
    }
    auto& [name, storage] = *found;
    if (storage.offset != 0) {
      throw WeightsError(WeightsErrorCode::DuplicateKey,
                         "lists storage " + in_quotes(name) + " twice");
    }
    if (file.size() - at < 8 || storage.bytes > file.size() - at - 8) {
      throw WeightsError(WeightsErrorCode::Truncated,
                         "is cut off before the end of storage " + in_quotes(name));
    }
    if (little_endian<uint64_t>(file.read(at, 8), 0) != storage.bytes / storage.item) {
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "gives storage " + in_quotes(name) + " two sizes");
    }
    storage.offset = at + 8;
    at += 8 + storage.bytes;
  }
}

// Everything before the data.
struct Head {
  Head(std::string_view bytes, Budget& budget) : pickle(bytes, budget) {
    parse_pickle(pickle, &end);  // the magic number
    const PickleId number = parse_pickle(pickle, &end);
    if (!pickle.is(number, PickleKind::Int) || pickle.integer(number) != kProtocol) {
      throw WeightsError(WeightsErrorCode::Unsupported, "has an unknown version of torch.save");
    }
    check_machine(pickle, parse_pickle(pickle, &end));
    root = parse_pickle(pickle, &end);
    keys = parse_pickle(pickle, &end);
  }

  Pickle pickle;
  PickleId root = kNoObject;
  PickleId keys = kNoObject;
  std::size_t end = 0;
};

Manifest read_after(const InputFile& file, const Head& head) {
  Manifest manifest;
  manifest.format = WeightsFormat::TorchSaveLegacy;
  manifest.files = {file.path()};
  Storages storages;
  TensorList list(manifest, head.pickle.budget(), file.size());
  TorchTensors objects(head.pickle, list, [&](std::string_view key, uint64_t bytes) {
    const auto found = storages.find(key);
    if (found == storages.end() || found->second.offset == 0 || found->second.bytes != bytes) {
      throw WeightsError(WeightsErrorCode::Corrupt, "has its data in storage " + in_quotes(key) +
                                                        ", which is missing or has another size");
    }
    return ManifestStorage{0, found->second.offset, bytes};
  });
  refuse_whole_object(objects, head.root);
  storages = find_sizes(objects);
  find_offsets(file, head.end, head.pickle, head.keys, storages);
  StateDictWalker(objects, list, manifest, head.pickle.budget()).run(head.root);
  return manifest;
}

}  // namespace

bool looks_like_torch_legacy(const InputFile& file) {
  const std::string head = file.read(0, std::min<uint64_t>(file.size(), 32));
  return std::any_of(std::begin(kMagicAt), std::end(kMagicAt), [&](std::size_t at) {
    return head.size() > at && std::string_view(head).substr(at, kMagic.size()) == kMagic;
  });
}

Manifest read_torch_legacy(const InputFile& file) {
  // The pickles have no length prefix: as much is read as they turn out to need.
  for (uint64_t size = kFirstRead;; size *= 4) {
    const std::string bytes = file.read(0, std::min(size, file.size()));
    Budget budget(file.size());
    std::optional<Head> head;
    try {
      head.emplace(bytes, budget);
    } catch (const WeightsError& error) {
      if (error.code() != WeightsErrorCode::Truncated || size >= file.size()) throw;
      continue;
    }
    return read_after(file, *head);
  }
}

}  // namespace posenc::io
