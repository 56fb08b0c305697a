// Tokens in the order of their ids: what makes one owner of each gradient row.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/embed.h"

namespace posenc::kernels::embed {

// The tokens sorted by id, those of one id in their own order. Group g, of all tokens with the id
// ids[g], is order[first[g]] ... order[first[g + 1] - 1]; ids ascend.
struct Order {
  std::vector<int32_t> order;
  std::vector<int32_t> first;
  std::vector<int64_t> ids;
};

// Of n < 2^31 ids. Left out are tokens whose id is `skip`, and those outside [0, bound): ids that
// were checked before may have been overwritten since.
Order group_by_id(const Integers& ids, int64_t n, int64_t bound, int64_t skip);

// Where to cut the groups so that each of `parts` has about as many tokens: the first group of part
// `part`; `part` = parts gives the number of groups.
int64_t first_group(const Order& order, int64_t part, int64_t parts);

}  // namespace posenc::kernels::embed
