#include "models/save/packed.h"

namespace posenc {

void add_packed(StateDict& tensors, const std::vector<std::string>& names, const at::Tensor& tensor,
                int64_t query_rows) {
  if (names.size() == 1) {
    tensors.insert(names.front(), tensor);
    return;
  }
  const bool has_queries = names.size() == 3 && query_rows > 0;
  const int64_t others = has_queries ? 2 : static_cast<int64_t>(names.size());
  int64_t begin = 0;
  for (const std::string& name : names) {
    const bool is_query = has_queries && begin == 0;
    const int64_t all = tensor.size(0) - (has_queries ? query_rows : 0);
    const int64_t end = begin + (is_query ? query_rows : all / others);
    tensors.insert(name, tensor.slice(0, begin, end));
    begin = end;
  }
}

}  // namespace posenc
