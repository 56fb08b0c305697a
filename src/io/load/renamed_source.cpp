#include "io/load/renamed_source.h"

#include <c10/util/Exception.h>

#include "io/base/quote.h"
#include "io/load/key_map.h"

namespace posenc::io {

RenamedSource::RenamedSource(const TensorSource& source, const std::string& prefix,
                             const KeyMap& map)
    : source_(source) {
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    Entry entry = source.entries()[i];
    if (entry.name.rfind(prefix, 0) == 0) {
      const std::string rest = entry.name.substr(prefix.size());
      if (const auto found = find_rule(rest, map)) {
        const std::string name = fill_pattern(map[found->rule].name, found->runs);
        if (name.empty()) continue;
        entry.name = prefix + name;
      }
    }
    entries_.push_back(std::move(entry));
    index_.push_back(i);
  }
}

at::Tensor RenamedSource::tensor(std::size_t index) const { return source_.tensor(index_[index]); }

at::Tensor RenamedSource::head(std::size_t index, int64_t axis, int64_t count) const {
  return source_.head(index_[index], axis, count);
}

void RenamedSource::copy_to(std::size_t index, const at::Tensor& target) const {
  source_.copy_to(index_[index], target);
}

bool RenamedSource::equal(std::size_t a, std::size_t b) const {
  return source_.equal(index_[a], index_[b]);
}

void RenamedSource::check_values(std::size_t index) const { source_.check_values(index_[index]); }

void check_renames(const char* caller, const KeyMap& map) {
  check_key_map(map);
  for (const auto& rule : map) {
    const auto& sources = rule.sources.items;
    TORCH_CHECK_VALUE(
        sources.size() == 1 && sources.front().change() == KeySource::Change::None, "[", caller,
        "] a rule of key_map must rename one tensor, to its name in transformers, or drop it. Got "
        "one that packs or changes ",
        in_quotes(sources.front().pattern()));
  }
}

}  // namespace posenc::io
