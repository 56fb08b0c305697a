#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/read/budget.h"
#include "io/read/pickle/pieces.h"

// What a pickle says, as inert data: nothing is imported, called or built. A call of a global
// stays the pair of its name and its arguments, for the caller to interpret or to leave alone.
namespace posenc::io {

/// An object of a pickle; objects that the pickle shares have one number.
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
  Dict,  ///< its items alternate: key, value
  Set,
  Call,        ///< callable, arguments; what was appended or set afterwards; its state
  Persistent,  ///< an object that lies outside of the pickle; torch: a storage
};

/// The objects of one pickle, or of several that follow each other in `bytes`. They may form
/// circles. The bytes have to outlive it.
class Pickle {
 public:
  Pickle(std::string_view bytes, Budget& budget) : bytes_(bytes), budget_(budget) {}

  std::string_view bytes() const noexcept { return bytes_; }
  Budget& budget() const noexcept { return budget_; }
  PickleId size() const { return nodes_.size(); }  ///< ids are below

  PickleKind kind(PickleId id) const { return nodes_[id].kind; }
  bool is(PickleId id, PickleKind kind) const { return id != kNoObject && nodes_[id].kind == kind; }

  int64_t integer(PickleId id) const;        ///< of Bool and Int
  double real(PickleId id) const;            ///< of Float
  std::string_view text(PickleId id) const;  ///< of Text, Bytes and BigInt
  std::string global(PickleId id) const;     ///< `module.name` of Global, else nothing

  PickleId callable(PickleId id) const { return nodes_[id].fields[kCallable]; }    ///< of Call
  PickleId arguments(PickleId id) const { return nodes_[id].fields[kArguments]; }  ///< and its id
  PickleId state(PickleId id) const { return nodes_[id].fields[kState]; }  ///< kNoObject if none

  /// The items of Tuple, List, Dict, Set and Call, one after the other:
  /// for (auto at = items(id); at != kNoObject; at = next(at)) item(at)
  uint32_t items(PickleId id) const { return nodes_[id].fields[kFirst]; }
  uint32_t next(uint32_t at) const { return cells_[at].next; }
  PickleId item(uint32_t at) const { return cells_[at].item; }
  uint32_t count(PickleId id) const { return nodes_[id].fields[kCount]; }

  // What the parser builds.
  PickleId add_scalar(PickleKind kind, uint64_t bits);
  PickleId add_text(PickleKind kind, std::size_t offset, std::size_t size);
  PickleId add_global(PickleId module, PickleId name);
  PickleId add_container(PickleKind kind);
  PickleId add_call(PickleId callable, PickleId arguments);
  PickleId add_persistent(PickleId id);
  void append(PickleId container, PickleId item);
  void set_state(PickleId call, PickleId state) { nodes_[call].fields[kState] = state; }

 private:
  // What the fields of a node hold, by its kind. Scalars and texts have two numbers in the first.
  enum Field { kFirst, kLast, kCount, kCallable, kArguments, kState, kFields };
  struct Node {
    PickleKind kind;
    uint32_t fields[kFields];
  };
  struct Cell {
    PickleId item;
    uint32_t next;
  };

  PickleId add(PickleKind kind);
  uint64_t bits(PickleId id) const;

  std::string_view bytes_;
  Budget& budget_;
  // They refer to each other by number: nothing is destroyed in depth.
  Pieces<Node> nodes_;
  Pieces<Cell> cells_;
};

}  // namespace posenc::io
