// Groups tokens by id, so that each gradient row has exactly one owner.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/embed.h"

namespace posenc::kernels::embed {

// Tokens sorted by id, in their original order within each id. Group g, all tokens with the id
// ids[g], is tokens[first[g]] ... tokens[first[g + 1] - 1]; ids are ascending.
struct TokenGroups {
  std::vector<int32_t> tokens;
  std::vector<int32_t> first;
  std::vector<int64_t> ids;
};

// Groups n < 2^31 ids. Tokens whose id is `skip` are ignored, as are ids outside [0, bound): ids
// that were checked earlier may have been overwritten since.
TokenGroups group_by_id(const Integers& ids, int64_t n, int64_t bound, int64_t skip);

// Splits the groups into `parts` parts of about equally many tokens: returns the first group of
// part `part`, or the number of groups if `part` == parts.
int64_t first_group(const TokenGroups& groups, int64_t part, int64_t parts);

}  // namespace posenc::kernels::embed
