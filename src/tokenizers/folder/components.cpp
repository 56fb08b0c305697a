#include "tokenizers/folder/components.h"

namespace posenc::text::components {

Component sequence(const char* members, std::vector<Component> parts) {
  return {{"type", "Sequence"}, {members, Component(std::move(parts))}};
}

Component plain(const char* type) { return {{"type", type}}; }

Component replace(const std::string& text, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"String", text}}}, {"content", content}};
}

Component precompiled(const std::string& charsmap) {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}};
}

Component byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

Component split(Component pattern, const char* behavior, bool invert) {
  return {{"type", "Split"},
          {"pattern", std::move(pattern)},
          {"behavior", behavior},
          {"invert", invert}};
}

}  // namespace posenc::text::components
