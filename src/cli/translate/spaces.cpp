#include "cli/translate/spaces.h"

#include <algorithm>

namespace posenc::cli {
namespace {

constexpr std::string_view kSpaces[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",
                                        "\x1c",   "\x1d",   "\x1e",   "\x1f",   "\u0085", "\u00a0",
                                        "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                        "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                        "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

template <typename IsAtEnd>
std::size_t space_bytes(IsAtEnd is_at_end) {
  const auto* found = std::find_if(std::begin(kSpaces), std::end(kSpaces), is_at_end);
  return found == std::end(kSpaces) ? 0 : found->size();
}

}  // namespace

std::string_view without_left_spaces(std::string_view text) {
  while (const auto bytes = space_bytes([&](auto space) { return text.starts_with(space); })) {
    text.remove_prefix(bytes);
  }
  return text;
}

std::string_view without_right_spaces(std::string_view text) {
  while (const auto bytes = space_bytes([&](auto space) { return text.ends_with(space); })) {
    text.remove_suffix(bytes);
  }
  return text;
}

}  // namespace posenc::cli
