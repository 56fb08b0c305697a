#include "posenc/sinusoid/preset.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "posenc/core/nearest.h"

namespace posenc {

SinusoidOptions preset(std::string_view name, int64_t dim) {
  std::vector<std::string> names;
  for (const Preset& candidate : presets()) {
    if (candidate.name == name) return candidate.make(dim);
    names.push_back(candidate.name);
  }
  TORCH_CHECK_VALUE(false, "[preset] there is no preset `", std::string(name),
                    "`; the nearest are ",
                    fmt::format("{}", fmt::join(nearest(name, names), ", ")));
}

}  // namespace posenc
