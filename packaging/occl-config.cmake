# find_package(occl) defines the target occl::occl.
get_filename_component(_occl_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET occl::occl)
  add_library(occl::occl SHARED IMPORTED)
  set_target_properties(occl::occl PROPERTIES
    IMPORTED_LOCATION "${_occl_prefix}/lib/liboccl.so.0"
    IMPORTED_SONAME liboccl.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_occl_prefix}/include")
endif()
unset(_occl_prefix)
