#pragma once

#include <cstddef>

namespace posenc::text::unicode {

/// Two characters that canonical composition joins. Hangul is computed.
struct Composition {
  char32_t second, first, composed;
};

extern const Composition kCompositions[];  // in ascending order of second and first
extern const std::size_t kCompositionCount;

}  // namespace posenc::text::unicode
