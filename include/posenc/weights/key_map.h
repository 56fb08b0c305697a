#pragma once

// posenc-budget: one class, whose rules are an example each

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Tensors of a file, by a pattern of their names, and how each is changed before it is loaded. A
/// string is a source whose tensors are loaded as they are.
///
/// In a pattern an asterisk matches any sequence of characters, as few as possible. A pattern
/// without asterisks is an exact name.
class KeySource {
 public:
  /// How a tensor of the file is changed.
  enum class Change {
    None,              ///< not at all
    Transpose,         ///< torch.transpose(axis0, axis1)
    Squeeze,           ///< torch.squeeze(axis0)
    Unsqueeze,         ///< torch.unsqueeze(axis0)
    AdjacentToHalves,  ///< rows of each head reordered: rotary pairs 2i, 2i + 1 become i, i + n
    HalvesToAdjacent,  ///< the same, back
    SwapHalves,        ///< the second half of the rows before the first
    Ungroup,           ///< a grouped convolution of length 1 as a matrix with blocks of zeros
    BlockDiagonal,     ///< matrices of groups as such a matrix
    HeadsToParts,      ///< rows of each head's parts as the rows of all heads of each part
    GroupsToParts,     ///< the same of each key head with its queries
    BlocksToParts,     ///< the same of blocks of queries, values and keys
    HeadsToRows,       ///< (in, heads, Dh) as Linear's (heads * Dh, in)
    HeadsToColumns,    ///< (out, heads, Dh) as Linear's (out, heads * Dh)
  };

  /// Tensors that are loaded as they are.
  KeySource(std::string pattern) : pattern_(std::move(pattern)) {}
  /// Tensors that are loaded as they are.
  KeySource(const char* pattern) : pattern_(pattern) {}
  /// Swaps two axes, as torch.transpose does: (in, out) of GPT-2's Conv1D becomes Linear's
  /// (out, in).
  static KeySource transposed(std::string pattern, int64_t axis0 = 0, int64_t axis1 = 1) {
    return {std::move(pattern), Change::Transpose, axis0, axis1};
  }
  /// Removes an axis of length one: squeezed("final_logits_bias", 0) turns (1, V) into (V).
  static KeySource squeezed(std::string pattern, int64_t axis) {
    return {std::move(pattern), Change::Squeeze, axis, 0};
  }
  /// Inserts an axis of length one: unsqueezed("positions.weight", 0) turns (L, D) into (1, L, D).
  static KeySource unsqueezed(std::string pattern, int64_t axis) {
    return {std::move(pattern), Change::Unsqueeze, axis, 0};
  }

  /// Reorders the rows of a query or key projection, (heads * Dh, in), or of its bias, so that a
  /// model that rotates adjacent channels can be run as one that rotates halves: Meta's Llama files
  /// in Hugging Face's layout. `heads`: those of the projection, num_kv_heads for keys; 1 for a
  /// norm of one head. `rotary_dim`: the channels of a head that rotate, the first ones; 0: all.
  /// Exact: functional::convert_rotary_weight() has the same result.
  static KeySource adjacent_to_halves(std::string pattern, int64_t heads, int64_t rotary_dim = 0) {
    return {std::move(pattern), Change::AdjacentToHalves, heads, rotary_dim};
  }
  /// The inverse of adjacent_to_halves().
  static KeySource halves_to_adjacent(std::string pattern, int64_t heads, int64_t rotary_dim = 0) {
    return {std::move(pattern), Change::HalvesToAdjacent, heads, rotary_dim};
  }

  /// Puts the second half of the rows before the first: a file's (up; gate) becomes (gate; up).
  static KeySource swapped_halves(std::string pattern) {
    return {std::move(pattern), Change::SwapHalves, 0, 0};
  }

  /// Makes Linear's (out, in) of the weight (out, in / groups, 1) of a grouped Conv1d: zeros where
  /// an output does not see an input.
  static KeySource ungrouped(std::string pattern, int64_t groups) {
    return {std::move(pattern), Change::Ungroup, groups, 0};
  }

  /// Makes Linear's (out, in) of the matrices (groups, in / groups, out / groups) of a linear layer
  /// in groups: zeros where an output does not see an input. `groups`: how many the file must have;
  /// 0: any number.
  static KeySource block_diagonal(std::string pattern, int64_t groups = 0) {
    return {std::move(pattern), Change::BlockDiagonal, groups, 0};
  }

  /// Reorders the rows (heads, parts, Dh) to (parts, heads, Dh): a projection whose rows are the
  /// queries, keys and values of one head after another, as in DeBERTa, becomes one whose rows are
  /// all queries, all keys and all values.
  static KeySource heads_to_parts(std::string pattern, int64_t heads, int64_t parts = 3) {
    return {std::move(pattern), Change::HeadsToParts, heads, parts};
  }

  /// The same where heads of keys and values have several of queries: rows (kv_heads, queries + 2,
  /// Dh), the queries of a head of keys, the key and the value, become all queries, all keys and
  /// all values, as in Falcon.
  static KeySource groups_to_parts(std::string pattern, int64_t kv_heads, int64_t queries) {
    return {std::move(pattern), Change::GroupsToParts, kv_heads, queries};
  }

  /// Reorders the rows (blocks, 3, n), where a block has queries, values and keys, to all queries,
  /// all keys and all values: CodeGen's four blocks.
  static KeySource blocks_to_parts(std::string pattern, int64_t blocks) {
    return {std::move(pattern), Change::BlocksToParts, blocks, 3};
  }

  /// Makes Linear's (heads * Dh, in) of a projection (in, heads, Dh): XLNet's queries.
  static KeySource heads_to_rows(std::string pattern, int64_t heads) {
    return {std::move(pattern), Change::HeadsToRows, heads, 0};
  }
  /// Makes Linear's (out, heads * Dh) of a projection (out, heads, Dh): XLNet's output.
  static KeySource heads_to_columns(std::string pattern, int64_t heads) {
    return {std::move(pattern), Change::HeadsToColumns, heads, 0};
  }

  /// The pattern.
  const std::string& pattern() const { return pattern_; }
  /// How the tensors are changed.
  Change change() const { return change_; }
  /// The first number that describes the change: its axis, or the number of heads or groups.
  int64_t first() const { return first_; }
  /// The second one: the other axis of a transpose, rotary_dim, or the number of parts or queries.
  int64_t second() const { return second_; }

 private:
  KeySource(std::string pattern, Change change, int64_t first, int64_t second)
      : pattern_(std::move(pattern)), change_(change), first_(first), second_(second) {}

  std::string pattern_;
  Change change_ = Change::None;
  int64_t first_ = 0, second_ = 0;  // axes, or heads and rotary_dim
};

/// The sources of a rule: one, or several in braces, whose rows follow one another in the module's
/// tensor.
struct KeySources {
  /// One source.
  KeySources(KeySource source) : items{std::move(source)} {}
  /// One pattern, whose tensors are loaded as they are.
  KeySources(const char* pattern) : items{pattern} {}
  /// One pattern, whose tensors are loaded as they are.
  KeySources(std::string pattern) : items{std::move(pattern)} {}
  /// Several sources, in the order of their rows.
  KeySources(std::initializer_list<KeySource> sources) : items(sources) {}
  /// Several sources, in the order of their rows.
  KeySources(std::vector<KeySource> sources) : items(std::move(sources)) {}

  std::vector<KeySource> items;  ///< in the order of their rows
};

/// A rule of a KeyMap: the tensors of the file that become one tensor of the module.
struct KeyRule {
  /// A template, so that braces around the name cannot construct a std::string from a pair of
  /// pointers.
  template <typename Name,
            typename = std::enable_if_t<std::is_constructible_v<std::string, const Name&>>>
  KeyRule(KeySources from, const Name& to) : sources(std::move(from)), name(to) {}

  KeySources sources;  ///< in the file, after the prefix is stripped
  std::string name;    ///< in the module; empty to drop the tensors
};

/// How the tensors of a file become those of a module, after the prefix is stripped:
/// ```cpp
/// using posenc::KeySource;
/// posenc::KeyMap map = {
///     {"transformer.h.*.ln_1.*", "layers.*.norm1.*"},                           // renames
///     {"lm_head.*", ""},                                                        // drops
///     {KeySource::transposed("h.*.c_fc.weight"), "layers.*.linear1.weight"},    // transposes
///     {KeySource::adjacent_to_halves("*.wk.weight", 8), "*.k_proj.weight"},     // reorders rows
///     {{"*.q_proj.*", "*.k_proj.*", "*.v_proj.*"}, "*.self_attn.in_proj_*"}};   // packs by rows
/// ```
/// The first pattern that matches a whole name is used, and a name that none matches stays as it
/// is. The n-th asterisk of the new name is replaced by what the n-th one of the pattern matched.
///
/// The patterns of a pack have the same number of asterisks, which must match the same text for all
/// of its parts. A file that has some of them must have all, with the same shape except for the
/// number of rows (axis 0).
using KeyMap = std::vector<KeyRule>;

}  // namespace posenc
