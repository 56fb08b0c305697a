#include "identify/rotary/place.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace posenc::identification {

bool is_rotary_place(std::string_view name) {
  std::string part;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.') {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
      continue;
    }
    const bool module = i < name.size();  // the last component is the tensor's own name
    if (module && (part == "attn" || part == "self_attn" || part == "attention" ||
                   part == "self_attention")) {
      return true;
    }
    if (part.find("rotary") != std::string::npos || part == "rope") return true;
    part.clear();
  }
  return false;
}

bool names_rotary(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](const char* word) { return lower.find(word) != std::string::npos; };
  return is_rotary_place(name) || has("freq") || has("rotary") || has("rope");
}

}  // namespace posenc::identification
