// posenc-budget: one table of changes, each with its inverse

#include "weights/load/key_change.h"

#include <ATen/ops/block_diag.h>
#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/head_channels.h"

namespace posenc::io {
namespace {

using Change = KeySource::Change;
using ChangedSizes = std::optional<std::vector<int64_t>>;
using at::IntArrayRef;
using at::Tensor;

std::size_t axis_of(int64_t number) { return static_cast<std::size_t>(number); }

bool can_multiply(int64_t a, int64_t b) { return a <= std::numeric_limits<int64_t>::max() / b; }

ChangedSizes same_sizes(const KeySource&, IntArrayRef in_file) { return in_file.vec(); }

// Rotary pairs.

// The channels that are reordered in a head of `width`; all of them unless the source specifies a
// number.
int64_t rotary_dim_of(const KeySource& source, int64_t width) {
  return source.second() == 0 ? width : source.second();
}

ChangedSizes sizes_of_pairs(const KeySource& source, IntArrayRef in_file) {
  if ((in_file.size() != 1 && in_file.size() != 2) || in_file[0] % source.first() != 0)
    return std::nullopt;
  const int64_t width = in_file[0] / source.first(), rotating = rotary_dim_of(source, width);
  if (rotating > width || rotating % 2 != 0) return std::nullopt;
  return in_file.vec();
}

std::string rule_of_pairs(const KeySource& source) {
  const std::string rows = std::to_string(source.first()) + " * Dh";
  return "must be (" + rows + ", in) or (" + rows + ") with " +
         (source.second() == 0 ? "an even Dh"
                               : "a Dh of at least " + std::to_string(source.second())) +
         " for its rows to be reordered";
}

template <PairOrder to>
Tensor with_pairs(const KeySource& source, const Tensor& tensor) {
  const int64_t width = tensor.size(0) / source.first();
  return reorder_head_channels(tensor, source.first(), rotary_dim_of(source, width), to);
}

Tensor with_halves_swapped(const KeySource&, const Tensor& tensor) {
  return tensor.roll(tensor.size(0) / 2, 0);
}

// Groups, whose matrices are on the diagonal of Linear's.

// The matrices (out / groups, in / groups, groups) on the diagonal.
Tensor diagonal_matrices(const Tensor& weight, int64_t groups) {
  const int64_t out = weight.size(0) / groups, in = weight.size(1) / groups;
  return weight.reshape({groups, out, groups, in}).diagonal(0, 0, 2);
}

ChangedSizes sizes_of_convolution(const KeySource& source, IntArrayRef in_file) {
  if (in_file.size() != 3 || in_file[2] != 1 || in_file[0] % source.first() != 0 ||
      !can_multiply(in_file[1], source.first())) {
    return std::nullopt;
  }
  return std::vector<int64_t>{in_file[0], in_file[1] * source.first()};
}

Tensor without_groups(const KeySource& source, const Tensor& in_file) {
  return at::block_diag(in_file.squeeze(2).chunk(source.first(), 0));
}

Tensor with_groups(const KeySource& source, const Tensor& weight) {
  return diagonal_matrices(weight, source.first())
      .permute({2, 0, 1})
      .reshape({weight.size(0), weight.size(1) / source.first(), 1});
}

ChangedSizes sizes_of_matrices(const KeySource& source, IntArrayRef in_file) {
  if (in_file.size() != 3 || in_file[0] == 0 || !can_multiply(in_file[1], in_file[0]) ||
      !can_multiply(in_file[2], in_file[0])) {
    return std::nullopt;
  }
  if (source.first() != 0 && source.first() != in_file[0]) return std::nullopt;
  return std::vector<int64_t>{in_file[0] * in_file[2], in_file[0] * in_file[1]};
}

std::string rule_of_matrices(const KeySource& source) {
  const std::string number = source.first() == 0 ? "" : std::to_string(source.first()) + " ";
  return "must be the matrices (groups, in / groups, out / groups) of a linear layer in " + number +
         "groups";
}

Tensor on_diagonal(const KeySource&, const Tensor& in_file) {
  return at::block_diag(in_file.transpose(1, 2).unbind(0));
}

Tensor from_diagonal(const KeySource& source, const Tensor& weight) {
  return diagonal_matrices(weight, source.first()).permute({2, 1, 0});
}

// Heads.

Tensor exchanged(const Tensor& tensor, int64_t outer, int64_t inner) {
  return tensor.unflatten(0, {outer, inner, -1}).transpose(0, 1).reshape(tensor.sizes());
}

ChangedSizes sizes_of_parts(const KeySource& source, IntArrayRef in_file) {
  if (in_file.empty() || in_file[0] % source.first() != 0 ||
      in_file[0] / source.first() % source.second() != 0) {
    return std::nullopt;
  }
  return in_file.vec();
}

std::string rule_of_parts(const KeySource& source) {
  return "must have " + std::to_string(source.first()) + " * " + std::to_string(source.second()) +
         " * Dh rows, the parts of one head after another";
}

// The second and the third of three parts exchanged.
Tensor with_keys_second(const Tensor& parts) {
  const std::vector<Tensor> each = parts.chunk(3, 0);
  return at::cat({each[0], each[2], each[1]});
}

Tensor groups_to_parts(const KeySource& source, const Tensor& in_file) {
  const int64_t queries = source.second();
  const Tensor groups = in_file.unflatten(0, {source.first(), queries + 2, -1});
  const auto part = [&](int64_t begin, int64_t count) {
    return groups.narrow(1, begin, count).flatten(0, 2);
  };
  return at::cat({part(0, queries), part(queries, 1), part(queries + 1, 1)});
}

Tensor parts_to_groups(const KeySource& source, const Tensor& changed) {
  const int64_t kv_heads = source.first(), queries = source.second();
  const int64_t rows = changed.size(0) / (queries + 2);  // of all keys
  const auto part = [&](int64_t begin, int64_t count) {
    return changed.narrow(0, begin * rows, count * rows).unflatten(0, {kv_heads, count, -1});
  };
  return at::cat({part(0, queries), part(queries, 1), part(queries + 1, 1)}, 1).flatten(0, 2);
}

template <bool to_rows>
ChangedSizes sizes_of_heads(const KeySource& source, IntArrayRef in_file) {
  if (in_file.size() != 3 || in_file[1] != source.first() ||
      !can_multiply(in_file[2], source.first())) {
    return std::nullopt;
  }
  const int64_t width = in_file[1] * in_file[2];
  return to_rows ? std::vector<int64_t>{width, in_file[0]}
                 : std::vector<int64_t>{in_file[0], width};
}

std::string rule_of_heads(const KeySource& source) {
  return "must have three axes, the second of them of " + std::to_string(source.first()) + " heads";
}

constexpr const char* kReordered = ", reordered,";
constexpr const char* kUngrouped = ", ungrouped,";

// One row each, in the order of the enumeration.
const KeyChange kChanges[] = {
    {.change = Change::None,
     .done = "",
     .sizes = same_sizes,
     .rule = [](const KeySource&) { return std::string(); },
     .apply = nullptr,
     .undo = [](const KeySource&, const Tensor& changed) { return changed; }},
    {.change = Change::Transpose,
     .done = ", transposed,",
     .sizes = [](const KeySource& source, IntArrayRef in_file) -> ChangedSizes {
       std::vector<int64_t> sizes = in_file.vec();
       const std::size_t a = axis_of(source.first()), b = axis_of(source.second());
       if (a >= sizes.size() || b >= sizes.size()) return std::nullopt;
       std::swap(sizes[a], sizes[b]);
       return sizes;
     },
     .rule =
         [](const KeySource& source) {
           return "must have axes " + std::to_string(source.first()) + " and " +
                  std::to_string(source.second()) + " to be transposed";
         },
     .apply = nullptr,
     .undo =
         [](const KeySource& source, const Tensor& changed) {
           return changed.transpose(source.first(), source.second());
         }},
    {.change = Change::Squeeze,
     .done = ", squeezed,",
     .sizes = [](const KeySource& source, IntArrayRef in_file) -> ChangedSizes {
       std::vector<int64_t> sizes = in_file.vec();
       const std::size_t axis = axis_of(source.first());
       if (axis >= sizes.size() || sizes[axis] != 1) return std::nullopt;
       sizes.erase(sizes.begin() + source.first());
       return sizes;
     },
     .rule =
         [](const KeySource& source) {
           return "must have length 1 along axis " + std::to_string(source.first());
         },
     .apply = nullptr,
     .undo = [](const KeySource& source,
                const Tensor& changed) { return changed.unsqueeze(source.first()); }},
    {.change = Change::Unsqueeze,
     .done = ", unsqueezed,",
     .sizes = [](const KeySource& source, IntArrayRef in_file) -> ChangedSizes {
       std::vector<int64_t> sizes = in_file.vec();
       if (axis_of(source.first()) > sizes.size()) return std::nullopt;
       sizes.insert(sizes.begin() + source.first(), 1);
       return sizes;
     },
     .rule =
         [](const KeySource& source) {
           const std::string axis = std::to_string(source.first());
           return "must have at least " + axis + " axes to get one at " + axis;
         },
     .apply = nullptr,
     .undo = [](const KeySource& source,
                const Tensor& changed) { return changed.squeeze(source.first()); }},
    {.change = Change::AdjacentToHalves,
     .done = kReordered,
     .sizes = sizes_of_pairs,
     .rule = rule_of_pairs,
     .apply = with_pairs<PairOrder::Halves>,
     .undo = with_pairs<PairOrder::Adjacent>},
    {.change = Change::HalvesToAdjacent,
     .done = kReordered,
     .sizes = sizes_of_pairs,
     .rule = rule_of_pairs,
     .apply = with_pairs<PairOrder::Adjacent>,
     .undo = with_pairs<PairOrder::Halves>},
    {.change = Change::SwapHalves,
     .done = kReordered,
     .sizes = [](const KeySource&, IntArrayRef in_file) -> ChangedSizes {
       if (in_file.empty() || in_file[0] % 2 != 0) return std::nullopt;
       return in_file.vec();
     },
     .rule =
         [](const KeySource&) {
           return std::string("must have an even number of rows for their halves to be swapped");
         },
     .apply = with_halves_swapped,
     .undo = with_halves_swapped},
    {.change = Change::Ungroup,
     .done = kUngrouped,
     .sizes = sizes_of_convolution,
     .rule =
         [](const KeySource& source) {
           return "must be the weight (out, in / groups, 1) of a convolution with " +
                  std::to_string(source.first()) + " groups, which divide out";
         },
     .apply = without_groups,
     .undo = with_groups,
     .groups_of = "convolution"},
    {.change = Change::BlockDiagonal,
     .done = kUngrouped,
     .sizes = sizes_of_matrices,
     .rule = rule_of_matrices,
     .apply = on_diagonal,
     .undo = from_diagonal,
     .groups_of = "linear layer"},
    {.change = Change::HeadsToParts,
     .done = kReordered,
     .sizes = sizes_of_parts,
     .rule = rule_of_parts,
     .apply =
         [](const KeySource& source, const Tensor& in_file) {
           return exchanged(in_file, source.first(), source.second());
         },
     .undo =
         [](const KeySource& source, const Tensor& changed) {
           return exchanged(changed, source.second(), source.first());
         }},
    {.change = Change::GroupsToParts,
     .done = kReordered,
     .sizes = [](const KeySource& source, IntArrayRef in_file) -> ChangedSizes {
       if (in_file.empty() || in_file[0] % source.first() != 0 ||
           in_file[0] / source.first() % (source.second() + 2) != 0) {
         return std::nullopt;
       }
       return in_file.vec();
     },
     .rule =
         [](const KeySource& source) {
           return "must have " + std::to_string(source.first()) + " * (" +
                  std::to_string(source.second()) +
                  " + 2) * Dh rows, the queries, the key and the value of one head of keys after "
                  "another";
         },
     .apply = groups_to_parts,
     .undo = parts_to_groups},
    {.change = Change::BlocksToParts,
     .done = kReordered,
     .sizes = sizes_of_parts,
     .rule = rule_of_parts,
     .apply =
         [](const KeySource& source, const Tensor& in_file) {
           return with_keys_second(exchanged(in_file, source.first(), source.second()));
         },
     .undo =
         [](const KeySource& source, const Tensor& changed) {
           return exchanged(with_keys_second(changed), source.second(), source.first());
         }},
    {.change = Change::HeadsToRows,
     .done = kReordered,
     .sizes = sizes_of_heads<true>,
     .rule = rule_of_heads,
     .apply = nullptr,
     .undo =
         [](const KeySource& source, const Tensor& changed) {
           return changed.unflatten(0, {source.first(), -1}).permute({2, 0, 1});
         }},
    {.change = Change::HeadsToColumns,
     .done = kReordered,
     .sizes = sizes_of_heads<false>,
     .rule = rule_of_heads,
     .apply = nullptr,
     .undo = [](const KeySource& source,
                const Tensor& changed) { return changed.unflatten(1, {source.first(), -1}); }},
};

}  // namespace

const KeyChange& change_of(const KeySource& source) {
  const auto row = static_cast<std::size_t>(source.change());
  TORCH_INTERNAL_ASSERT(row < std::size(kChanges) && kChanges[row].change == source.change(),
                        "[change_of] the rows are not in the order of the enumeration");
  return kChanges[row];
}

}  // namespace posenc::io
