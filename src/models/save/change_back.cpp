#include "models/save/tensors.h"

#include <c10/util/Exception.h>

#include "weights/load/key_change.h"
#include "weights/load/key_map.h"

namespace posenc {

void change_back(StateDict& tensors, const LoadOptions& names) {
  for (auto& item : tensors) {
    if (!item.key().starts_with(names.prefix())) continue;
    const std::string_view own = std::string_view(item.key()).substr(names.prefix().size());
    const auto found = io::find_rule(own, names.key_map());
    if (!found) continue;
    const KeySource& source = names.key_map()[found->rule].sources.items[found->source];
    const io::KeyChange& change = io::change_of(source);
    const at::Tensor in_file = change.undo(source, item.value()).contiguous();
    TORCH_CHECK_VALUE(
        change.groups_of == nullptr || in_file.count_nonzero().equal(item.value().count_nonzero()),
        "[save_pretrained] ", item.key(), " must be zero between the ", source.first(),
        " groups of the ", change.groups_of, " that it is in transformers. Got other numbers");
    item.value() = in_file;
  }
}

}  // namespace posenc
