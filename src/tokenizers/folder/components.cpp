#include "tokenizers/folder/components.h"

namespace posenc::text::components {

Component sequence(const char* members, std::vector<Component> parts) {
  return {{"type", "Sequence"}, {members, Component(std::move(parts))}};
}

Component plain(const char* type) { return {{"type", type}}; }

Component replace(const std::string& text, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"String", text}}}, {"content", content}};
}

Component replace_regex(const std::string& expression, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", expression}}}, {"content", content}};
}

Component precompiled(const std::string& charsmap) {
  return {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}};
}

Component strip(bool left, bool right) {
  return {{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}};
}

Component byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

Component metaspace(const char* prepend_scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", prepend_scheme},
          {"split", split}};
}

Component split(Component pattern, const char* behavior, bool invert) {
  return {{"type", "Split"},
          {"pattern", std::move(pattern)},
          {"behavior", behavior},
          {"invert", invert}};
}

}  // namespace posenc::text::components
