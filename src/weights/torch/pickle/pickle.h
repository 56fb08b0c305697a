#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weights/common/budget.h"
#include "weights/torch/pickle/chunked_vector.h"

// The content of a pickle, as inert data: nothing is imported, called or built. A call of a global
// remains the pair of its name and its arguments, for the caller to interpret or ignore.
namespace posenc::io {

/// An object of a pickle; one that the pickle refers to several times has a single id.
using PickleId = uint32_t;
inline constexpr PickleId kNoObject = UINT32_MAX;

enum class PickleKind : uint8_t {
  None,
  Bool,
  Int,
  BigInt,  ///< beyond 64 bits: its little-endian bytes
  Float,
  Text,
  Bytes,
  Global,  ///< a class or function, by module and name
  Tuple,
  List,
  Dict,  ///< items alternate: key, value
  Set,
  Call,        ///< callable and arguments; what was appended or set afterwards; its state
  Persistent,  ///< an object outside the pickle; in PyTorch's, a storage
};

/// The objects of one pickle, or of several consecutive ones, in `bytes`, which have to outlive it.
/// They may form cycles.
class Pickle {
 public:
  Pickle(std::string_view bytes, Budget& budget) : bytes_(bytes), budget_(budget) {}

  std::string_view bytes() const noexcept { return bytes_; }
  Budget& budget() const noexcept { return budget_; }
  PickleId size() const { return nodes_.size(); }  ///< ids are below this

  PickleKind kind(PickleId id) const { return nodes_[id].kind; }
  bool is(PickleId id, PickleKind kind) const { return id != kNoObject && nodes_[id].kind == kind; }

  int64_t integer(PickleId id) const;  ///< of Bool and Int
  double real(PickleId id) const;      ///< of Float
  /// The bytes of a Text, Bytes or BigInt. Charged, since the caller will compare, hash or copy
  /// them.
  std::string_view text(PickleId id) const;
  std::size_t text_size(PickleId id) const { return nodes_[id].second; }
  /// `module.name` of Global, otherwise empty. Charged as well.
  std::string global(PickleId id) const;

  PickleId callable(PickleId id) const { return call(id).callable; }  ///< of Call
  PickleId arguments(PickleId id) const {                             ///< of Call and Persistent
    return is(id, PickleKind::Call) ? call(id).arguments : nodes_[id].first;
  }
  PickleId state(PickleId id) const { return call(id).state; }  ///< of Call; kNoObject if none
  /// What a Call's items were added as: List for single ones, Dict for keys and values; None if it
  /// has no items, or both kinds.
  PickleKind items_kind(PickleId id) const {
    const PickleKind kind = call(id).items;
    return kind == PickleKind::Call ? PickleKind::None : kind;
  }

  /// Iterates over the items of Tuple, List, Dict, Set and Call:
  /// for (auto at = items(id); at != kNoObject; at = next(at)) item(at)
  /// Each step is charged: items are walked over nowhere else.
  uint32_t items(PickleId id) const {
    return nodes_[id].first == kNoObject ? kNoObject : runs_[nodes_[id].first].first;
  }
  uint32_t next(uint32_t at) const {
    constexpr uint64_t kStep = 32;
    budget_.work(kStep);
    return cells_[at].next;
  }
  PickleId item(uint32_t at) const { return cells_[at].item; }
  uint32_t count(PickleId id) const {
    return nodes_[id].first == kNoObject ? 0 : runs_[nodes_[id].first].count;
  }

  // For the parser, which builds the objects.
  PickleId add_scalar(PickleKind kind, uint64_t bits);
  PickleId add_text(PickleKind kind, std::size_t offset, std::size_t size);
  PickleId add_global(PickleId module, PickleId name);
  PickleId add_container(PickleKind kind);
  PickleId add_call(PickleId callable, PickleId arguments);
  PickleId add_persistent(PickleId id);
  void append(PickleId container, PickleId item);
  void add_items_kind(PickleId call, PickleKind kind) {
    PickleKind& known = calls_[nodes_[call].second].items;
    known = known == PickleKind::None || known == kind ? kind : PickleKind::Call;
  }
  void set_state(PickleId id, PickleId state) { calls_[nodes_[id].second].state = state; }

 private:
  // The meaning of the two numbers depends on the kind. Bool, Int, Float: the bits. Text, Bytes,
  // BigInt: offset and size. Global: the texts of module and name. Persistent: its id. The others:
  // their run of items, if any; for Call also the number of its call. Nodes are small, as most
  // objects of a large file are scalars.
  struct Node {
    PickleKind kind;
    uint32_t first, second;
  };
  struct Run {
    uint32_t first, last, count;
  };
  struct CallParts {
    PickleId callable, arguments, state;
    PickleKind items = PickleKind::None;  // Call for both kinds
  };
  struct Cell {
    PickleId item;
    uint32_t next;
  };

  PickleId add(PickleKind kind, uint32_t first = kNoObject, uint32_t second = kNoObject);
  const CallParts& call(PickleId id) const { return calls_[nodes_[id].second]; }
  uint64_t bits(PickleId id) const;

  std::string_view bytes_;
  Budget& budget_;
  // Objects refer to each other by number, so that destruction does not recurse.
  ChunkedVector<Node> nodes_;
  ChunkedVector<Run> runs_;
  ChunkedVector<CallParts> calls_;
  ChunkedVector<Cell> cells_;
};

}  // namespace posenc::io
