// The changes of a KeySource, each with its inverse.
#include "weights/load/key_change.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/compare.h"
#include "weights/support.h"

namespace posenc::testing::key_change_test {
namespace {

using Change = KeySource::Change;

struct Case {
  KeySource source;
  std::vector<int64_t> in_file;
};

const Case kCases[] = {
    {KeySource("a"), {4, 6}},
    {KeySource::transposed("a"), {4, 6}},
    {KeySource::transposed("a", 0, 2), {4, 6, 2}},
    {KeySource::squeezed("a", 1), {4, 1, 6}},
    {KeySource::unsqueezed("a", 0), {4, 6}},
    {KeySource::adjacent_to_halves("a", 2, 4), {12, 3}},
    {KeySource::halves_to_adjacent("a", 3), {12}},
    {KeySource::swapped_halves("a"), {6, 5}},
    {KeySource::ungrouped("a", 3), {6, 4, 1}},
    {KeySource::block_diagonal("a", 3), {3, 4, 2}},
    {KeySource::heads_to_parts("a", 4), {24, 5}},
    {KeySource::groups_to_parts("a", 2, 3), {20, 5}},
    {KeySource::groups_to_parts("a", 3, 1), {18}},
    {KeySource::blocks_to_parts("a", 4), {24, 5}},
    {KeySource::heads_to_rows("a", 3), {5, 3, 4}},
    {KeySource::heads_to_columns("a", 3), {5, 3, 4}},
};

// As a load changes it.
at::Tensor changed(const KeySource& source, const at::Tensor& in_file) {
  const io::KeyChange& change = io::change_of(source);
  if (change.apply != nullptr) return change.apply(source, in_file);
  const at::Tensor result = torch::empty(*change.sizes(source, in_file.sizes()));
  change.undo(source, result).copy_(in_file);
  return result;
}

TEST(KeyChange, EachIsUndone) {
  std::set<Change> seen;
  for (const Case& one : kCases) {
    SCOPED_TRACE(static_cast<int>(one.source.change()));
    seen.insert(one.source.change());
    const io::KeyChange& change = io::change_of(one.source);
    EXPECT_EQ(change.change, one.source.change());
    const at::Tensor in_file = torch::randn(one.in_file);
    const at::Tensor result = changed(one.source, in_file);
    const auto sizes = change.sizes(one.source, in_file.sizes());
    ASSERT_TRUE(sizes.has_value());
    EXPECT_EQ(result.sizes(), at::IntArrayRef(*sizes));
    const at::Tensor back = change.undo(one.source, result);
    EXPECT_EQ(back.sizes(), in_file.sizes());
    EXPECT_TRUE(back.equal(in_file));
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(Change::HeadsToColumns) + 1) << "of all changes";
}

// Queries, keys and values of two tokens' heads, told apart by their numbers.
TEST(KeyChange, PartsAreThoseOfAllHeads) {
  const auto of = [](const KeySource& source, const std::vector<int64_t>& rows) {
    return changed(source, torch::tensor(rows));
  };
  const auto is = [](const at::Tensor& got, const std::vector<int64_t>& rows) {
    return got.equal(torch::tensor(rows));
  };
  // Two heads of keys: queries 11, 12, key 13, value 14; and 21 to 24.
  EXPECT_TRUE(is(of(KeySource::groups_to_parts("a", 2, 2), {11, 12, 13, 14, 21, 22, 23, 24}),
                 {11, 12, 21, 22, 13, 23, 14, 24}));
  // Two blocks: a query 1, a value 2, a key 3; and 4 to 6.
  EXPECT_TRUE(is(of(KeySource::blocks_to_parts("a", 2), {1, 2, 3, 4, 5, 6}), {1, 4, 3, 6, 2, 5}));
}

TEST(KeyChange, GroupsOfAnotherNumber) {
  const std::vector<int64_t> sizes = {4, 3, 2};
  const auto sizes_with = [&](int64_t groups) {
    const KeySource source = KeySource::block_diagonal("a", groups);
    return io::change_of(source).sizes(source, sizes);
  };
  EXPECT_EQ(sizes_with(4), (std::vector<int64_t>{8, 12}));
  EXPECT_EQ(sizes_with(0), (std::vector<int64_t>{8, 12}));
  EXPECT_FALSE(sizes_with(2).has_value());
  const KeySource source = KeySource::block_diagonal("a", 2);
  EXPECT_CONTAINS(io::change_of(source).rule(source), "of a linear layer in 2 groups");
}

}  // namespace
}  // namespace posenc::testing::key_change_test
