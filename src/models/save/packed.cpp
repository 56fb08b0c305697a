#include "models/save/packed.h"

#include <cstddef>

namespace posenc {

void add_packed(StateDict& tensors, const std::vector<std::string>& names, const at::Tensor& tensor,
                int64_t query_rows) {
  if (names.size() == 1) {
    tensors.insert(names.front(), tensor);
    return;
  }
  const int64_t begin = names.size() == 2 ? 0 : query_rows;
  const int64_t rows = (tensor.size(0) - begin) / 2;
  std::vector<int64_t> first = {begin, begin + rows, tensor.size(0)};
  if (names.size() == 3) first.insert(first.begin(), 0);
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.insert(names[i], tensor.slice(0, first[i], first[i + 1]));
}

}  // namespace posenc
